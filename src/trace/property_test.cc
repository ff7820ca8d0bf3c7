// Properties over generated traces and loads.
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "assay/trace.h"

#include "support/trace_text.h"

namespace assay::trace {
namespace {

// Any bytes, empty included.
rc::Gen<std::string> AnyText() {
  return rc::gen::oneOf(rc::gen::container<std::string>(rc::gen::inRange(' ', '~')),
                        rc::gen::container<std::string>(rc::gen::arbitrary<char>()));
}

std::string AnyDigest(bool may_be_empty) {
  const auto digit = rc::gen::elementOf(std::string("0123456789abcdef"));
  const auto digits = rc::gen::container<std::string>(digit);
  return may_be_empty ? *digits : *rc::gen::nonEmpty(digits);
}

// Small numbers and ones at every power of two, the largest included.
uint64_t AnyNumber() {
  const int bits = *rc::gen::inRange(0, 65);
  const auto value = *rc::gen::arbitrary<uint64_t>();
  return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

uint32_t AnyNumber32() { return static_cast<uint32_t>(AnyNumber()); }
Extent3 AnyExtent() { return {AnyNumber32(), AnyNumber32(), AnyNumber32()}; }
ByteRange AnyRange() {
  const uint64_t a = AnyNumber();
  const uint64_t b = AnyNumber();
  return {std::min(a, b), std::max(a, b)};
}

// Makes a trace event by event, each allowed where it stands.
class TraceGenerator {
 public:
  std::vector<Event> Generate() {
    const int metas = *rc::gen::inRange(0, 3);
    for (int i = 0; i < metas; ++i) Add(MetaEvent{"key-" + std::to_string(i), *AnyText()});
    const int steps = *rc::gen::inRange(0, 30);
    for (int i = 0; i < steps; ++i) AddAny();
    bool refused = false;
    for (size_t i = 0; i < kRefusalCount; ++i) {
      if (*rc::gen::inRange(0, 3) != 0) continue;
      Add(RefusedEvent{static_cast<Refusal>(i), std::max<uint64_t>(AnyNumber(), 1)});
      refused = true;
    }
    if (unnamed_ && !refused) Add(RefusedEvent{Refusal::kStaleJob, 1});
    return std::move(events_);
  }

 private:
  void Add(Event event) { events_.push_back(std::move(event)); }

  void AddAny() {
    switch (*rc::gen::inRange(0, 7)) {
      case 0:
        return Add(
            BufferEvent{BufferId(buffers_++), AnyNumber(), AnyKind(), *AnyText(), AnyDigest(true)});
      case 1:
        return Add(KernelEvent{KernelId(kernels_++), *AnyText(), AnyDigest(false), AnyExtent(),
                               *AnyText(), AnyNumber32()});
      case 2:
        if (buffers_ > 0) Add(FreeEvent{BufferId(*rc::gen::inRange<uint64_t>(0, buffers_))});
        return;
      case 3:
        return Add(HostWriteEvent{AnyBuffer(), AnyRange()});
      case 4:
        return Add(HostReadEvent{AnyBuffer(), AnyRange()});
      case 5:
        return Add(WaitEvent{});
      default:
        return AddCommandBuffer();
    }
  }

  void AddCommandBuffer() {
    Add(BeginEvent{});
    const int commands = *rc::gen::inRange(0, 4);
    for (int i = 0; i < commands; ++i) {
      if (kernels_ == 0 || *rc::gen::inRange(0, 3) == 0) {
        Add(BarrierEvent{});
        continue;
      }
      DispatchEvent dispatch{.kernel = KernelId(*rc::gen::inRange<uint32_t>(0, kernels_)),
                             .grid = AnyExtent(),
                             .shared_bytes = AnyNumber32()};
      for (const uint8_t byte : *rc::gen::arbitrary<std::vector<uint8_t>>()) {
        dispatch.args.push_back(static_cast<std::byte>(byte));
      }
      const int accesses = *rc::gen::inRange(0, 5);
      for (int k = 0; k < accesses; ++k) {
        dispatch.accesses.push_back({static_cast<Access>(*rc::gen::inRange(0, 3)), AnyBuffer(),
                                     AnyRange(), *rc::gen::arbitrary<bool>()});
      }
      Add(dispatch);
    }
    Add(CommitEvent{});
  }

  static BufferKind AnyKind() { return static_cast<BufferKind>(*rc::gen::inRange(0, 6)); }
  BufferId AnyBuffer() {
    const auto number = *rc::gen::inRange<uint64_t>(0, buffers_ + 1);
    if (number < buffers_) return BufferId(number);
    unnamed_ = true;
    return kUnnamedBuffer;
  }

  std::vector<Event> events_;
  uint64_t buffers_ = 0;
  uint32_t kernels_ = 0;
  bool unnamed_ = false;
};

RC_GTEST_PROP(TracePropertyTest, T12_EveryTraceReadsBackAsItWasWritten, ()) {
  const std::vector<Event> events = TraceGenerator().Generate();
  const std::string text = assay::testing::TextOf(2, events);
  const auto read = assay::testing::ReadAll(text);
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == events);
  RC_ASSERT(assay::testing::TextOf(2, *read) == text);
}

RC_GTEST_PROP(TracePropertyTest, T13_ALineHasOneFormOnly, ()) {
  // A line with one byte changed is refused, or it is the one form of another event.
  const std::vector<Event> events = TraceGenerator().Generate();
  RC_PRE(!events.empty());
  std::string line = FormatEvent(events[*rc::gen::inRange<size_t>(0, events.size())]);
  const size_t at = *rc::gen::inRange<size_t>(0, line.size());
  line[at] = *rc::gen::oneOf(rc::gen::inRange(' ', '~'), rc::gen::arbitrary<char>());
  const Result<Event> event = ParseEvent(line);
  if (event) RC_ASSERT(FormatEvent(*event) == line);
}

// A few values, so that equal fields and unequal ones both come often.
DispatchEvent AnySimilarDispatch() {
  DispatchEvent dispatch{.kernel = KernelId(*rc::gen::inRange<uint32_t>(0, 2)),
                         .grid = {*rc::gen::inRange<uint32_t>(1, 3), 1, 1},
                         .shared_bytes = *rc::gen::inRange<uint32_t>(0, 2)};
  dispatch.args.resize(*rc::gen::element<size_t>(0, 4, 4, 5, 200));
  for (std::byte& byte : dispatch.args) byte = static_cast<std::byte>(*rc::gen::inRange(0, 256));
  const size_t accesses = *rc::gen::element<size_t>(0, 1, 1, 2, 6, 7);
  for (size_t i = 0; i < accesses; ++i) {
    const uint64_t begin = *rc::gen::inRange<uint64_t>(0, 2);
    dispatch.accesses.push_back({static_cast<Access>(*rc::gen::inRange(0, 3)),
                                 BufferId(*rc::gen::inRange<uint64_t>(0, 2)),
                                 {begin, begin + *rc::gen::inRange<uint64_t>(0, 2)},
                                 *rc::gen::arbitrary<bool>()});
  }
  return dispatch;
}

// Changes one thing about a dispatch.
void ChangeOneThing(DispatchEvent* dispatch) {
  const int field = *rc::gen::inRange(0, 10);
  BufferAccess* access = nullptr;
  if (!dispatch->accesses.empty()) {
    access = &dispatch->accesses[*rc::gen::inRange<size_t>(0, dispatch->accesses.size())];
  }
  if (field == 0) dispatch->kernel = KernelId(1 - dispatch->kernel.value());
  if (field == 1) dispatch->grid.z += 1;
  if (field == 2) dispatch->shared_bytes += 1;
  if (field == 3) dispatch->args.push_back(std::byte{7});
  if (field == 4 && !dispatch->args.empty()) dispatch->args.back() ^= std::byte{1};
  if (field == 5 && !dispatch->accesses.empty()) dispatch->accesses.pop_back();
  if (access == nullptr) return;
  if (field == 6) access->buffer = BufferId(1 - access->buffer.value());
  if (field == 7) access->range.end += 1;
  if (field == 8) access->access = static_cast<Access>((static_cast<int>(access->access) + 1) % 3);
  if (field == 9) access->exact = !access->exact;
}

DispatchRecord RecordOf(const DispatchEvent& dispatch,
                        std::vector<DispatchRecord::Binding>* bindings) {
  bindings->clear();
  for (const BufferAccess& access : dispatch.accesses) {
    bindings->push_back({access.buffer.value(), access.range, access.access, access.exact});
  }
  return {.kernel_key = dispatch.kernel.value(),
          .grid = dispatch.grid,
          .shared_bytes = dispatch.shared_bytes,
          .args = dispatch.args,
          .bindings = *bindings};
}

// A step like `step`: says it to `commands` by replacing what differs, and makes `step` say it.
void SayOneDifferently(TraceWriter::CommandBuffer* commands, size_t index,
                       DispatchEvent* dispatch) {
  std::vector<DispatchRecord::Binding> bindings;
  const int way = *rc::gen::inRange(0, 3);
  if (way == 0 && !dispatch->args.empty()) {
    const auto first = *rc::gen::inRange<size_t>(0, dispatch->args.size());
    dispatch->args[first] ^= std::byte{0xA5};
    commands->ReplaceArgs(index, first, std::span(dispatch->args).subspan(first, 1));
  } else if (way == 1 && !dispatch->accesses.empty()) {
    const auto place = *rc::gen::inRange<size_t>(0, dispatch->accesses.size());
    const auto begin = *rc::gen::inRange<uint64_t>(0, 200);
    const ByteRange range{begin, begin + *rc::gen::inRange<uint64_t>(0, 2000)};
    const size_t characters = fmt::format("{},{}", range.begin, range.end).size();
    ByteRange& old = dispatch->accesses[place].range;
    const bool fits = characters == fmt::format("{},{}", old.begin, old.end).size();
    RC_ASSERT(commands->ReplaceRange(index, place, range) == fits);
    if (fits) old = range;
  } else {
    const auto args = dispatch->args.size();
    const auto accesses = dispatch->accesses.size();
    ChangeOneThing(dispatch);
    dispatch->args.resize(args);
    dispatch->accesses.resize(accesses);
    commands->Replace(index, RecordOf(*dispatch, &bindings));
  }
}

RC_GTEST_PROP(TracePropertyTest, T1_CommandBuffersLikeEarlierOnesAreWrittenAsTheyAre, ()) {
  const auto any = rc::gen::exec(AnySimilarDispatch);
  std::vector<DispatchEvent> step = *rc::gen::container<std::vector<DispatchEvent>>(any);
  std::string text;
  auto writer = TraceWriter::CreateInMemory(&text, {}).value();
  std::vector<DispatchRecord::Binding> bindings;
  for (const uint64_t key : {0, 1}) {
    writer->BufferMade(key, {.size_bytes = 8});
    writer->KernelMade(key, {.name = key == 0 ? "zero" : "one", .digest = "0"});
  }
  // Both kernels get their numbers first.
  std::vector<DispatchEvent> expected = {{.kernel = KernelId(0)}, {.kernel = KernelId(1)}};
  {
    const auto commands = writer->BeginCommandBuffer();
    for (const DispatchEvent& dispatch : expected)
      commands->Dispatch(RecordOf(dispatch, &bindings));
    writer->Commit(*commands);
  }
  const auto commands = writer->BeginCommandBuffer();
  RC_ASSERT(!commands->Repeat());  // Nothing was committed.
  for (size_t i = 0; i < step.size(); ++i) {
    if (i % 3 == 1) commands->Barrier();
    commands->Dispatch(RecordOf(step[i], &bindings));
  }
  writer->Commit(*commands);
  expected.insert(expected.end(), step.begin(), step.end());
  const int steps = *rc::gen::inRange(0, 6);
  for (int i = 0; i < steps; ++i) {
    RC_ASSERT(commands->Repeat());
    size_t index = 0;
    for (size_t k = 0; k < step.size(); ++k) {
      if (k % 3 == 1) ++index;  // The barrier.
      if (*rc::gen::arbitrary<bool>()) SayOneDifferently(commands.get(), index, &step[k]);
      ++index;
    }
    writer->Commit(*commands);
    expected.insert(expected.end(), step.begin(), step.end());
  }
  // A key may stand for something else now.
  writer->KernelMade(2, {.name = "two", .digest = "0"});
  RC_ASSERT(!commands->Repeat());
  RC_ASSERT(writer->Close().has_value());
  std::vector<DispatchEvent> found;
  const auto events = assay::testing::ReadAll(text);
  RC_ASSERT(events.has_value());
  for (const Event& event : *events) {
    if (const auto* dispatch = std::get_if<DispatchEvent>(&event)) found.push_back(*dispatch);
  }
  RC_ASSERT(found == expected);
}

// What one job does: makes buffers, writes and frees them, in an order of its own.
using JobSteps = std::vector<int>;

std::string RecordLoad(const std::vector<JobSteps>& jobs, const std::vector<size_t>& turns,
                       size_t failing_job) {
  std::string text;
  auto writer = TraceWriter::CreateInMemory(&text, {}).value();
  LoadObserver* observer = writer->load_observer();
  writer->BufferMade(0, {.size_bytes = 1});
  const uint64_t load = observer->OnLoadBegin(jobs.size());
  std::vector<size_t> done(jobs.size(), 0);
  std::vector<uint64_t> made(jobs.size(), 0);
  for (const size_t job : turns) {
    observer->OnJobBegin(load, job);
    const uint64_t newest = (job + 1) << 32 | made[job];
    switch (jobs[job][done[job]++]) {
      case 0:
        writer->BufferMade(newest + 1, {.size_bytes = newest + 1});
        ++made[job];
        break;
      case 1:
        writer->HostWrite(made[job] > 0 ? newest : 0, {0, done[job]});
        break;
      default:
        writer->HostRead(0, {0, done[job]});
        break;
    }
    observer->OnJobEnd(load, job, job != failing_job);
  }
  observer->OnLoadEnd(load);
  writer->BufferMade(1, {.size_bytes = 2});
  RC_ASSERT(writer->Close().has_value());
  RC_ASSERT(assay::testing::ReadAll(text).has_value());
  return text;
}

RC_GTEST_PROP(TracePropertyTest, T2_NoInterleavingOfJobsChangesAByte, ()) {
  const auto jobs = *rc::gen::container<std::vector<JobSteps>>(
      rc::gen::container<JobSteps>(rc::gen::inRange(0, 3)));
  std::vector<size_t> in_order;
  for (size_t job = 0; job < jobs.size(); ++job) {
    in_order.insert(in_order.end(), jobs[job].size(), job);
  }
  const auto failing_job = *rc::gen::inRange<size_t>(0, 2 * jobs.size() + 1);
  const auto turns = *rc::gen::exec([&] {
    std::vector<size_t> shuffled = in_order;
    for (size_t i = shuffled.size(); i > 1; --i) {
      std::swap(shuffled[i - 1], shuffled[*rc::gen::inRange<size_t>(0, i)]);
    }
    return shuffled;
  });
  RC_ASSERT(RecordLoad(jobs, turns, failing_job) == RecordLoad(jobs, in_order, failing_job));
}

}  // namespace
}  // namespace assay::trace
