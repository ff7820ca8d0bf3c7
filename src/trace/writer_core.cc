#include "trace/writer_core.h"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "trace/text.h"

namespace assay::trace {
namespace {

// More than a name and the words around it take.
constexpr size_t kLineSlack = 128;

constexpr std::string_view kCommit = "commit\n";

Error InvalidArgument(std::string_view subject, std::string message) {
  return {ErrorCode::kInvalidArgument, std::string(subject), std::move(message)};
}

Error UnknownKey(std::string_view thing, uint64_t key) {
  return InvalidArgument("", fmt::format("No {} is recorded under the key {:#x}.", thing, key));
}

Error BackwardRange(ByteRange range) {
  return InvalidArgument("", fmt::format("A range to be recorded begins ({}) behind its end ({}).",
                                         range.begin, range.end));
}

}  // namespace

bool WriterCore::CheckLine(std::string_view what, const std::string& body) {
  if (body.size() + kLineSlack <= kMaxLineBytes) return true;
  file_->Fail(InvalidArgument("", fmt::format("The line of a {} ({} bytes) is longer than the "
                                              "limit ({}).",
                                              what, body.size(), kMaxLineBytes - kLineSlack)));
  return false;
}

void WriterCore::BufferMade(uint64_t key, const BufferRecord& record) {
  Item item{.kind = Item::Kind::kBuffer, .text = BufferBody(record) + "\n"};
  const std::lock_guard lock(mutex_);
  if (!Open()) return;
  if (!record.digest.empty() && !IsHexDigest(record.digest)) {
    file_->Fail(InvalidArgument(record.label, fmt::format("The digest \"{}\" of the buffer \"{}\" "
                                                          "is not lower-case hex.",
                                                          record.digest, record.label)));
    return;
  }
  if (!CheckLine("buffer", item.text)) return;
  if (names_.Find(key) != nullptr) epoch_.fetch_add(1, std::memory_order_release);
  const Place place = names_.Here();
  item.buffer = names_.Made(key);
  if (item.buffer->refused()) {
    item.buffer->line = BufferNamer::Slot::Line::kNever;
    return;
  }
  Route(place, std::move(item));
}

void WriterCore::BufferFreed(uint64_t key) noexcept {
  const std::lock_guard lock(mutex_);
  if (!Open()) return;
  epoch_.fetch_add(1, std::memory_order_release);
  try {
    Item item{.kind = Item::Kind::kFree, .buffer = names_.Freed(key), .text = "\n"};
    if (item.buffer == nullptr) return file_->Fail(UnknownKey("buffer", key));
    // The end of a buffer that leaves no line leaves none either.
    if (item.buffer->line == BufferNamer::Slot::Line::kNever) return;
    Route(names_.Here(), std::move(item));
  } catch (const std::bad_alloc&) {
    file_->FailForMemory();
  }
}

void WriterCore::HostAccess(std::string_view word, uint64_t key, ByteRange range) {
  const std::lock_guard lock(mutex_);
  if (!Open()) return;
  if (range.begin > range.end) return file_->Fail(BackwardRange(range));
  const BufferNamer::SlotRef slot = names_.Find(key);
  if (slot == nullptr) return file_->Fail(UnknownKey("buffer", key));
  std::array<char, 48> text;
  Item item{.text = std::string(word)};
  item.holes.push_back({.at = item.text.size(), .buffer = slot});
  item.text.append(text.data(), PutRange(text.data(), range));
  item.text += '\n';
  Route(names_.Here(), std::move(item));
}

void WriterCore::KernelMade(uint64_t key, const KernelRecord& record) {
  std::string body = KernelBody(record);
  const std::lock_guard lock(mutex_);
  if (!Open()) return;
  if (!IsHexDigest(record.digest)) {
    file_->Fail(InvalidArgument(record.name, fmt::format("The digest \"{}\" of the kernel \"{}\" "
                                                         "is not lower-case hex.",
                                                         record.digest, record.name)));
    return;
  }
  if (!CheckLine("kernel", body)) return;
  epoch_.fetch_add(1, std::memory_order_release);
  std::shared_ptr<KernelEntry>& entry = kernels_by_body_[body];
  if (entry == nullptr) {
    entry = std::make_shared<KernelEntry>();
    entry->body = std::move(body);
  }
  kernels_[key] = entry;
}

void WriterCore::Wait() {
  const std::lock_guard lock(mutex_);
  if (Open()) Route(names_.Here(), Item{.text = "wait\n"});
}

void WriterCore::Route(const Place& place, Item item) {
  if (place.where == Place::Where::kJob) {
    job_items_[place.job].push_back(std::move(item));
  } else if (place.where == Place::Where::kNowhere && names_.refuses()) {
    Refuse(place.reason);
  } else {
    Put(item);
  }
}

void WriterCore::Put(const Item& item) {
  using Line = BufferNamer::Slot::Line;
  switch (item.kind) {
    case Item::Kind::kBuffer: {
      filled_.Clear();
      char* p = filled_.Reserve(kLineSlack);
      filled_.CommitTo(PutBufferName(PutText(p, "buffer "), *item.buffer->number()));
      filled_.Append(item.text);
      item.buffer->line = Line::kWritten;
      break;
    }
    case Item::Kind::kFree: {
      if (item.buffer->line == Line::kNever) return;
      if (item.buffer->line == Line::kNotYet) return Refuse(Refusal::kOutsideJob);
      filled_.Clear();
      char* p = filled_.Reserve(kLineSlack);
      filled_.CommitTo(PutBufferName(PutText(p, "free "), *item.buffer->number()));
      filled_.Append(item.text);
      break;
    }
    case Item::Kind::kUse:
      file_->Append(FillHoles(item), item.lines);
      return;
  }
  file_->Append(filled_.text(), item.lines);
}

std::string_view WriterCore::FillHoles(const Item& item) {
  if (item.holes.empty()) return item.text;
  for (const Hole& hole : item.holes) {
    if (hole.kernel != nullptr) NumberKernel(hole.kernel.get());
  }
  filled_.Clear();
  const std::string_view text = item.text;
  size_t done = 0;
  for (const Hole& hole : item.holes) {
    filled_.Append(text.substr(done, hole.at - done));
    done = hole.at;
    char* p = filled_.Reserve(kLineSlack);
    filled_.CommitTo(hole.kernel != nullptr ? PutDecimal(p, hole.kernel->id->value())
                                            : PutBufferName(p, NameForUse(*hole.buffer)));
  }
  filled_.Append(text.substr(done));
  return filled_.text();
}

BufferId WriterCore::NameForUse(const BufferNamer::Slot& buffer) {
  using Line = BufferNamer::Slot::Line;
  if (buffer.line == Line::kWritten) return *buffer.number();
  // A refused buffer was counted when it was made; any other counts at each use.
  if (buffer.line == Line::kNotYet) {
    Refuse(Refusal::kOutsideJob);
  } else if (!buffer.refused()) {
    Refuse(Refusal::kStaleJob);
  }
  return kUnnamedBuffer;
}

void WriterCore::NumberKernel(KernelEntry* kernel) {
  if (kernel->id) return;
  kernel->id = KernelId(next_kernel_++);
  std::array<char, 24> name;
  std::string line = "kernel k";
  line.append(name.data(), PutDecimal(name.data(), kernel->id->value()));
  line += kernel->body;
  line += '\n';
  file_->Append(line, 1);
}

Status WriterCore::Close() {
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr) return close_status_;
  if (names_.AnyLoad()) {
    file_->Fail(InvalidArgument("", "The trace was closed while a load was running."));
  }
  for (size_t i = 0; i < kRefusalCount; ++i) {
    const uint64_t count = names_.refusals()[i] + refused_events_[i];
    if (count > 0) file_->Append(RefusedLine(static_cast<Refusal>(i), count) + "\n", 1);
  }
  close_status_ = file_->Finish();
  file_.reset();
  return close_status_;
}

void WriterCore::Abandon() {
  const std::lock_guard lock(mutex_);
  file_.reset();
}

uint64_t WriterCore::OnLoadBegin(size_t /*job_count*/) {
  const std::lock_guard lock(mutex_);
  return names_.BeginLoad();
}

void WriterCore::OnJobBegin(uint64_t load, size_t job) {
  const std::lock_guard lock(mutex_);
  names_.BeginJob(load, job);
}

void WriterCore::OnJobEnd(uint64_t load, size_t job, bool ok) {
  const std::lock_guard lock(mutex_);
  names_.EndJob(load, job, ok);
}

void WriterCore::OnLoadEnd(uint64_t load) {
  const std::lock_guard lock(mutex_);
  const EndedLoad ended = names_.EndLoad(load);
  if (!ended.had_places) return;
  for (const auto& [job, items] : std::exchange(job_items_, {})) {
    const bool kept = job < ended.lowest_failed_job;
    for (const Item& item : items) {
      if (!kept) {
        if (item.kind == Item::Kind::kBuffer) item.buffer->line = BufferNamer::Slot::Line::kNever;
      } else if (Open()) {
        Put(item);
      }
    }
  }
}

std::unique_ptr<GatheredCommands> WriterCore::Begin() {
  std::unique_ptr<GatheredCommands> commands;
  {
    const std::lock_guard lock(mutex_);
    if (!spare_commands_.empty()) {
      commands = std::move(spare_commands_.back());
      spare_commands_.pop_back();
    }
  }
  if (commands == nullptr) commands = std::make_unique<GatheredCommands>();
  Clear(commands.get());
  return commands;
}

void WriterCore::Clear(GatheredCommands* commands) const {
  commands->text.Clear();
  commands->text.Append("begin\n");
  commands->events.clear();
  commands->ranges_at.clear();
  commands->holes.clear();
  commands->error.reset();
  commands->epoch = epoch_.load(std::memory_order_acquire);
  commands->committed = false;
}

void NameCache::Set(uint64_t key, uint64_t epoch, std::string_view name) {
  if (epoch != epoch_) {
    entries_.assign(entries_.size(), Entry());
    used_ = 0;
    epoch_ = epoch;
  }
  Entry entry{.key = key};
  if (name.size() > entry.text.size()) return;
  name.copy(entry.text.data(), name.size());
  entry.length = static_cast<uint8_t>(name.size());
  if (2 * (used_ + 1) > entries_.size()) {
    const std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(2 * entries_.size()));
    for (const Entry& kept : old) {
      if (kept.length != 0) Insert(kept);
    }
  }
  Insert(entry);
  ++used_;
}

void NameCache::Insert(const Entry& entry) {
  size_t i = IndexOf(entry.key);
  while (entries_[i].length != 0) i = (i + 1) & (entries_.size() - 1);
  entries_[i] = entry;
}

void WriterCore::Dispatch(GatheredCommands* commands, const DispatchRecord& record) {
  GatheredCommands::Event event{
      .begin = commands->text.size(), .args_at = 0, .first_range = commands->ranges_at.size()};
  commands->ranges_at.resize(event.first_range + record.bindings.size());
  char* const start =
      commands->text.Reserve(DispatchBound(record.args.size(), record.bindings.size()));
  commands->text.CommitTo(FormatDispatch(commands, &event, start, record));
  commands->events.push_back(event);
}

const char* WriterCore::FormatDispatch(GatheredCommands* commands, GatheredCommands::Event* event,
                                       char* start, const DispatchRecord& record) {
  const uint64_t epoch = epoch_.load(std::memory_order_acquire);
  if (epoch != commands->epoch) commands->epoch = 0;
  const size_t holes = commands->holes.size();
  char* hex = start;
  const auto place = [&](const char* p) { return event->begin + static_cast<size_t>(p - start); };
  size_t* range_at = commands->ranges_at.data() + event->first_range;
  const char* const end = PutDispatchLine(
      start, record.grid, record.shared_bytes, record.args, record.bindings,
      [&](char* p) {
        char* const known = commands->kernels.Put(p, record.kernel_key, epoch);
        if (known != nullptr) [[likely]]
          return known;
        return LookUpKernel(commands, p, record.kernel_key, epoch, place(p));
      },
      [&](char* p, const DispatchRecord::Binding& binding) {
        if (binding.range.begin > binding.range.end) [[unlikely]] {
          commands->error = BackwardRange(binding.range);
        }
        char* range = commands->buffers.Put(p, binding.buffer_key, epoch);
        if (range == nullptr) [[unlikely]] {
          range = LookUpBuffer(commands, p, binding.buffer_key, epoch, place(p));
        }
        *range_at++ = static_cast<size_t>(range - start);
        return range;
      },
      &hex);
  const auto line_bytes = static_cast<size_t>(end - start);
  if (line_bytes + kLineSlack > kMaxLineBytes) [[unlikely]] {
    commands->error = InvalidArgument(
        "", fmt::format("The line of a dispatch ({} bytes) is longer than the limit ({}).",
                        line_bytes, kMaxLineBytes - kLineSlack));
  }
  if (commands->holes.size() != holes) commands->epoch = 0;
  event->args_at = static_cast<size_t>(hex - start);
  return end;
}

char* WriterCore::LookUpBuffer(GatheredCommands* commands, char* p, uint64_t key, uint64_t epoch,
                               size_t text_at) {
  const std::lock_guard lock(mutex_);
  BufferNamer::SlotRef slot = names_.Find(key);
  if (slot == nullptr) {
    commands->error = UnknownKey("buffer", key);
  } else if (slot->line == BufferNamer::Slot::Line::kWritten || slot->refused()) {
    char* const end = PutBufferName(p, *slot->number());
    commands->buffers.Set(key, epoch, {p, static_cast<size_t>(end - p)});
    return end;
  } else {
    commands->holes.push_back({.at = text_at, .buffer = std::move(slot)});
  }
  return p;
}

char* WriterCore::LookUpKernel(GatheredCommands* commands, char* p, uint64_t key, uint64_t epoch,
                               size_t text_at) {
  const std::lock_guard lock(mutex_);
  const auto found = kernels_.find(key);
  if (found == kernels_.end()) {
    commands->error = UnknownKey("kernel", key);
  } else if (found->second->id) {
    char* const end = PutDecimal(p, found->second->id->value());
    commands->kernels.Set(key, epoch, {p, static_cast<size_t>(end - p)});
    return end;
  } else {
    commands->holes.push_back({.at = text_at, .kernel = found->second});
  }
  return p;
}

void WriterCore::Barrier(GatheredCommands* commands) {
  commands->events.push_back({commands->text.size(), 0, commands->ranges_at.size()});
  commands->text.Append("barrier\n");
}

bool WriterCore::Repeat(GatheredCommands* commands) {
  if (commands->committed && commands->epoch != 0 &&
      commands->epoch == epoch_.load(std::memory_order_acquire)) {
    return true;
  }
  Clear(commands);
  return false;
}

void WriterCore::Replace(GatheredCommands* commands, size_t index, const DispatchRecord& record) {
  GatheredCommands::Event& event = commands->events[index];
  const size_t next = index + 1 < commands->events.size() ? commands->events[index + 1].begin
                                                          : commands->text.size() - kCommit.size();
  commands->line.Clear();
  char* const start =
      commands->line.Reserve(DispatchBound(record.args.size(), record.bindings.size()));
  commands->line.CommitTo(FormatDispatch(commands, &event, start, record));
  const std::string_view line = commands->line.text();
  const ptrdiff_t longer = commands->text.Replace(event.begin, next - event.begin, line);
  if (longer == 0) [[likely]]
    return;
  for (size_t i = index + 1; i < commands->events.size(); ++i) {
    commands->events[i].begin += static_cast<size_t>(longer);
  }
}

void WriterCore::ReplaceArgs(GatheredCommands* commands, size_t index, size_t first,
                             std::span<const std::byte> bytes) {
  const GatheredCommands::Event& event = commands->events[index];
  PutHex(commands->text.At(event.begin + event.args_at + 2 * first), bytes);
}

bool WriterCore::ReplaceRange(GatheredCommands* commands, size_t index, size_t binding,
                              ByteRange range) {
  const GatheredCommands::Event& event = commands->events[index];
  char* const at =
      commands->text.At(event.begin + commands->ranges_at[event.first_range + binding]);
  std::array<char, 48> text;
  const auto length = static_cast<size_t>(PutRange(text.data(), range) - text.data());
  // A range ends at its first bracket of this kind.
  if (at[length - 1] != kRangeEnd || range.begin > range.end) return false;
  std::memcpy(at, text.data(), length);
  return true;
}

void WriterCore::Commit(GatheredCommands* commands) {
  if (!commands->committed) commands->text.Append(kCommit);
  commands->committed = true;
  const uint64_t lines = commands->events.size() + 2;
  const std::lock_guard lock(mutex_);
  if (!Open()) return;
  const Place place = names_.Here();
  if (commands->error) {
    file_->Fail(*commands->error);
  } else if (place.where == Place::Where::kSession && commands->holes.empty()) {
    file_->Append(commands->text.text(), lines);
  } else {
    Route(
        place,
        Item{.text = std::string(commands->text.text()), .holes = commands->holes, .lines = lines});
  }
}

void WriterCore::Recycle(std::unique_ptr<GatheredCommands> commands) {
  const std::lock_guard lock(mutex_);
  spare_commands_.push_back(std::move(commands));
}

}  // namespace assay::trace
