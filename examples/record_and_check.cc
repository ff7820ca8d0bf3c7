// Records a program twice, compares the two traces, and checks that every dependent pair of
// dispatches is ordered. Then it does so without the barrier, and the check finds the race.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "assay/compare.h"
#include "assay/gpu.h"
#include "assay/hazard.h"
#include "assay/kernels.h"
#include "assay/record.h"
#include "assay/trace.h"

namespace {

using assay::BufferKind;
using assay::Result;
using assay::Status;
namespace gpu = assay::gpu;
namespace kernels = assay::kernels;
namespace compare = assay::compare;
namespace hazard = assay::hazard;
namespace record = assay::record;
namespace trace = assay::trace;

Result<kernels::Matrix> MakeVector(gpu::Device& device, const char* label) {
  constexpr uint32_t kCount = 256;
  ASSAY_ASSIGN_OR_RETURN(
      const gpu::Buffer buffer,
      device.CreateBuffer(
          {.size_bytes = kCount * 4, .kind = BufferKind::kOther, .label = label, .digest = {}}));
  return kernels::Matrix{buffer.All(), kernels::DType::kF32, 1, kCount};
}

// y = x + x, then z = y * y, with or without the barrier between them.
Status Program(gpu::Device& device, bool with_barrier) {
  ASSAY_ASSIGN_OR_RETURN(const auto ops, kernels::Ops::Create(&device));
  ASSAY_ASSIGN_OR_RETURN(const auto session,
                         device.CreateSession({.barriers = gpu::BarrierMode::kManual}));
  ASSAY_ASSIGN_OR_RETURN(const kernels::Matrix x, MakeVector(device, "x"));
  ASSAY_ASSIGN_OR_RETURN(const kernels::Matrix y, MakeVector(device, "y"));
  ASSAY_ASSIGN_OR_RETURN(const kernels::Matrix z, MakeVector(device, "z"));
  ASSAY_TRY(ops->Add(*session, x, x, y));
  if (with_barrier) ASSAY_TRY(session->Barrier());
  ASSAY_TRY(ops->Mul(*session, y, y, z));
  ASSAY_TRY(session->Commit());
  return session->Wait();
}

// The trace of one run.
Result<std::string> Record(bool with_barrier) {
  std::string text;
  ASSAY_ASSIGN_OR_RETURN(const auto writer, trace::TraceWriter::CreateInMemory(&text, {}));
  {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<gpu::Backend> cpu, gpu::MakeBackend("cpu"));
    ASSAY_ASSIGN_OR_RETURN(const auto device, gpu::Device::Create(record::MakeRecordingBackend(
                                                  std::move(cpu), writer.get())));
    ASSAY_TRY(Program(*device, with_barrier));
  }
  ASSAY_TRY(writer->Close());
  return text;
}

Result<bool> RecordAndCheck() {
  ASSAY_ASSIGN_OR_RETURN(const std::string first, Record(true));
  ASSAY_ASSIGN_OR_RETURN(const std::string second, Record(true));
  std::printf("%s", first.c_str());
  const compare::Report compared = compare::CompareTraceTexts(first, second);
  std::printf("%s\n", compare::FormatVerdict(compared).c_str());

  const hazard::Options options;
  ASSAY_ASSIGN_OR_RETURN(const hazard::Report ordered,
                         hazard::CheckTraceText(first, "with barrier", options));
  ASSAY_ASSIGN_OR_RETURN(const std::string racy_text, Record(false));
  ASSAY_ASSIGN_OR_RETURN(const hazard::Report racy,
                         hazard::CheckTraceText(racy_text, "without barrier", options));
  std::printf("%s", hazard::FormatText(racy, options).c_str());
  return compared.verdict == compare::Verdict::kIdentical && ordered.findings.empty() &&
         racy.findings.size() == 1;
}

}  // namespace

int main() {
  const Result<bool> as_expected = RecordAndCheck();
  if (!as_expected) {
    std::fprintf(stderr, "%s\n", as_expected.error().ToString().c_str());
    return 1;
  }
  return *as_expected ? 0 : 1;
}
