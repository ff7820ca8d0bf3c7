#include <utility>

#include <fmt/format.h>

#include "assay/trace.h"

#include "trace/format.h"
#include "trace/line_file.h"
#include "trace/sink.h"
#include "trace/text.h"
#include "trace/writer_core.h"

namespace assay::trace {

// A command buffer may outlive its writer, so both hold the core.
struct TraceWriter::State {
  std::shared_ptr<WriterCore> core;
};

struct TraceWriter::CommandBuffer::State {
  std::shared_ptr<WriterCore> core;
  std::unique_ptr<GatheredCommands> commands;
};

Result<std::unique_ptr<TraceWriter>> TraceWriter::CreateOver(std::unique_ptr<Sink> sink,
                                                             const WriterOptions& options,
                                                             size_t block_bytes) {
  if (options.version != kCurrentVersion && options.version != kCreationOrderVersion) {
    return Fail(ErrorCode::kUnsupported, "",
                fmt::format("Trace version {} cannot be written; the versions are {} and {}.",
                            options.version, kCreationOrderVersion, kCurrentVersion));
  }
  std::string head = fmt::format("{}{}\n", kMagic, options.version);
  for (const auto& [key, value] : options.meta) {
    if (!IsMetaKey(key)) {
      return Fail(ErrorCode::kInvalidArgument, key,
                  fmt::format("The meta key \"{}\" is not made of lower-case letters, digits, '.', "
                              "'_' and '-'.",
                              key));
    }
    const std::string line = MetaLine(key, value);
    if (line.size() > kMaxLineBytes) {
      return Fail(ErrorCode::kInvalidArgument, key,
                  fmt::format("The line of the meta key \"{}\" ({} bytes) is longer than the limit "
                              "({}).",
                              key, line.size(), kMaxLineBytes));
    }
    head += line + "\n";
  }
  auto file = std::make_unique<LineFile>(std::move(sink), block_bytes);
  file->Append(head, 1 + options.meta.size());
  auto state = std::make_unique<State>();
  state->core = std::make_shared<WriterCore>(std::move(file), options.version);
  return std::unique_ptr<TraceWriter>(new TraceWriter(std::move(state)));
}

Result<std::unique_ptr<TraceWriter>> TraceWriter::Create(const std::string& path,
                                                         const WriterOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Sink> sink, MakePathSink(path));
  return CreateOver(std::move(sink), options, kBlockBytes);
}

Result<std::unique_ptr<TraceWriter>> TraceWriter::CreateInMemory(std::string* out,
                                                                 const WriterOptions& options) {
  return CreateOver(MakeStringSink(out), options, kBlockBytes);
}

TraceWriter::TraceWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceWriter::~TraceWriter() { state_->core->Abandon(); }

LoadObserver* TraceWriter::load_observer() { return state_->core.get(); }

void TraceWriter::BufferMade(uint64_t key, const BufferRecord& record) {
  state_->core->BufferMade(key, record);
}
void TraceWriter::BufferFreed(uint64_t key) { state_->core->BufferFreed(key); }
void TraceWriter::HostWrite(uint64_t key, ByteRange range) {
  state_->core->HostAccess("write ", key, range);
}
void TraceWriter::HostRead(uint64_t key, ByteRange range) {
  state_->core->HostAccess("read ", key, range);
}
void TraceWriter::KernelMade(uint64_t key, const KernelRecord& record) {
  state_->core->KernelMade(key, record);
}

std::unique_ptr<TraceWriter::CommandBuffer> TraceWriter::BeginCommandBuffer() {
  auto state = std::make_unique<CommandBuffer::State>();
  state->core = state_->core;
  state->commands = state_->core->Begin();
  return std::unique_ptr<CommandBuffer>(new CommandBuffer(std::move(state)));
}
void TraceWriter::Commit(CommandBuffer& command_buffer) {
  state_->core->Commit(command_buffer.state_->commands.get());
}
void TraceWriter::Wait() { state_->core->Wait(); }
Status TraceWriter::Close() { return state_->core->Close(); }

TraceWriter::CommandBuffer::CommandBuffer(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
TraceWriter::CommandBuffer::~CommandBuffer() { state_->core->Recycle(std::move(state_->commands)); }
void TraceWriter::CommandBuffer::Dispatch(const DispatchRecord& record) {
  state_->core->Dispatch(state_->commands.get(), record);
}
void TraceWriter::CommandBuffer::Barrier() { state_->core->Barrier(state_->commands.get()); }

void TraceWriter::CommandBuffer::Restart() { state_->core->Clear(state_->commands.get()); }
bool TraceWriter::CommandBuffer::Repeat() { return state_->core->Repeat(state_->commands.get()); }
void TraceWriter::CommandBuffer::Replace(size_t index, const DispatchRecord& record) {
  state_->core->Replace(state_->commands.get(), index, record);
}
void TraceWriter::CommandBuffer::ReplaceArgs(size_t index, size_t first,
                                             std::span<const std::byte> bytes) {
  state_->core->ReplaceArgs(state_->commands.get(), index, first, bytes);
}
bool TraceWriter::CommandBuffer::ReplaceRange(size_t index, size_t binding, ByteRange range) {
  return state_->core->ReplaceRange(state_->commands.get(), index, binding, range);
}

}  // namespace assay::trace
