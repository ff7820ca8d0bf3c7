// How fast traces are compared, in memory: equal, renumbered, and with differences few and many.
// bench/compare_large.sh measures the program on files of ten million lines.
#include <cstdlib>
#include <string>

#include <benchmark/benchmark.h>

#include "assay/compare.h"

#include "bench/sample_trace.h"

namespace assay::bench {
namespace {

std::string Sample(SampleVariant variant) {
  // One iteration of it under CTest must not take long.
  const uint64_t lines = std::getenv("ASSAY_BENCH_SMOKE") != nullptr ? 5000 : 500000;
  std::string text;
  auto writer = trace::TraceWriter::CreateInMemory(&text, {}).value();
  if (!WriteSample(writer.get(), lines, variant)) std::abort();
  return text;
}

// Reports bytes of both sides together.
void CompareWith(benchmark::State& state, SampleVariant variant, compare::Verdict expected) {
  const std::string a = Sample(SampleVariant::kPlain), b = Sample(variant);
  uint64_t lines = 0;
  for (auto _ : state) {
    const compare::Report report = compare::CompareTraceTexts(a, b);
    if (report.verdict != expected) state.SkipWithError("the verdict is wrong");
    lines += report.lines_a + report.lines_b;
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * (a.size() + b.size())));
  state.counters["lines"] =
      benchmark::Counter(static_cast<double>(lines), benchmark::Counter::kIsRate);
}

using compare::Verdict;
BENCHMARK_CAPTURE(CompareWith, identical, SampleVariant::kPlain, Verdict::kIdentical)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(CompareWith, renumbered, SampleVariant::kRenumbered, Verdict::kRenumbered)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(CompareWith, one_insertion, SampleVariant::kInserted, Verdict::kDifferent)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(CompareWith, one_change, SampleVariant::kChanged, Verdict::kDifferent)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(CompareWith, inserted_buffer, SampleVariant::kInsertedBuffer, Verdict::kDifferent)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(CompareWith, many_changes, SampleVariant::kManyChanges, Verdict::kDifferent)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace assay::bench
