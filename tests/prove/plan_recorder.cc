// A small program to be proved: it reads a plan of buffers, dispatches and barriers, runs it on the
// cpu device, and leaves the trace, one id and the scan of its one kernel.
//
//   plan_recorder PLAN KERNEL_SOURCE OUT DEPTH
//
//   meta KEY VALUE        a fact of the trace; ahead of everything else
//   buffer NAME           64 floats, all 1
//   scale FACTOR IN OUT   OUT = IN * FACTOR
//   barrier
//   commit
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "assay/gpu.h"
#include "assay/prove.h"
#include "assay/record.h"
#include "assay/trace.h"

#include "base/file.h"
#include "base/hash.h"
#include "gpu/cpu/cpu_kernel.h"

namespace assay {
namespace {

constexpr uint32_t kCount = 64;
using Floats = std::array<float, kCount>;

void Scale(const gpu::CpuKernelArgs& args, Extent3) {
  float factor = 0;
  std::memcpy(&factor, args.constants, sizeof(factor));
  const auto* in = reinterpret_cast<const float*>(args.bindings[0]);
  auto* out = reinterpret_cast<float*>(args.bindings[1]);
  for (uint32_t i = 0; i < kCount; ++i) out[i] = in[i] * factor;
}

constexpr gpu::CpuKernel kScale = {.resolve = [] { return gpu::CpuWorkgroupFn(&Scale); },
                                   .target = [] { return std::string_view("plain"); }};
constexpr gpu::KernelCode kCode = {gpu::kCpuCodeFormat, &kScale, sizeof(kScale)};

// Runs the plan; the first float of the buffer made last, as a whole number.
Result<int32_t> Run(std::istream& plan, gpu::Device& device, gpu::KernelId kernel) {
  ASSAY_ASSIGN_OR_RETURN(const auto session,
                         device.CreateSession({.barriers = gpu::BarrierMode::kManual}));
  std::map<std::string, gpu::Buffer> buffers;
  Floats values;
  gpu::Buffer last;
  std::string word;
  while (plan >> word) {
    if (word == "buffer") {
      std::string name;
      plan >> name;
      ASSAY_ASSIGN_OR_RETURN(last, device.CreateBuffer({.size_bytes = sizeof(Floats),
                                                        .kind = BufferKind::kActivation,
                                                        .label = name,
                                                        .digest = {}}));
      values.fill(1.0F);
      ASSAY_TRY(device.Write(last.All(), std::as_bytes(std::span(values))));
      buffers[name] = last;
    } else if (word == "scale") {
      float factor = 0;
      std::string in, out;
      plan >> factor >> in >> out;
      const std::array<gpu::Binding, 2> bindings = {
          gpu::Binding{buffers.at(in).All(), Access::kRead},
          gpu::Binding{buffers.at(out).All(), Access::kWrite}};
      ASSAY_TRY(session->Dispatch({.kernel = kernel,
                                   .bindings = bindings,
                                   .constants = std::as_bytes(std::span(&factor, 1)),
                                   .grid = {1, 1, 1}}));
    } else if (word == "barrier") {
      ASSAY_TRY(session->Barrier());
    } else if (word == "commit") {
      ASSAY_TRY(session->Commit());
      ASSAY_TRY(session->Wait());
    }
  }
  ASSAY_TRY(device.Read(last.All(), std::as_writable_bytes(std::span(values))));
  return static_cast<int32_t>(values[0]);
}

Status Record(const std::string& plan_path, const std::string& source_path, const std::string& out,
              const std::string& depth) {
  ASSAY_ASSIGN_OR_RETURN(const std::string source, ReadFile(source_path));
  const std::string digest = HexDigest(source);
  trace::WriterOptions options{.meta = {{"depth", depth}}};
  std::ifstream facts(plan_path);
  for (std::string word, key, value; facts >> word && word == "meta";) {
    facts >> key >> value;
    options.meta[key] = value;
  }
  ASSAY_ASSIGN_OR_RETURN(const auto writer,
                         trace::TraceWriter::Create(out + "/depth-" + depth + ".trace", options));
  {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<gpu::Backend> cpu, gpu::MakeBackend("cpu"));
    ASSAY_ASSIGN_OR_RETURN(const auto device, gpu::Device::Create(record::MakeRecordingBackend(
                                                  std::move(cpu), writer.get())));
    ASSAY_TRY(device->kernels().Add({.name = "scale",
                                     .workgroup = {1, 1, 1},
                                     .binding_count = 2,
                                     .constant_bytes = sizeof(float),
                                     .source_digest = digest,
                                     .code = std::span(&kCode, 1)}));
    ASSAY_ASSIGN_OR_RETURN(const gpu::KernelId kernel, device->kernels().Get("scale"));
    std::ifstream plan(plan_path);
    ASSAY_ASSIGN_OR_RETURN(const int32_t id, Run(plan, *device, kernel));
    ASSAY_TRY(WriteFile(out + "/depth-" + depth + ".ids", std::to_string(id) + "\n"));
  }
  ASSAY_TRY(writer->Close());
  const prove::Scan scan{
      "source", "", {{.kernel = "scale", .target = "plain", .digest = digest, .bindings = 2}}};
  return WriteFile(out + "/kernels.scan", prove::FormatScan(scan));
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc != 5) return 64;
  const assay::Status recorded = assay::Record(argv[1], argv[2], argv[3], argv[4]);
  if (recorded) return 0;
  std::fprintf(stderr, "%s\n", recorded.error().ToString().c_str());
  return 2;
}
