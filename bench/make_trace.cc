// make_trace PATH LINES VARIANT: writes a long trace for the scripts of this folder.
#include <charconv>
#include <cstdio>
#include <string_view>

#include "bench/sample_trace.h"

namespace {

int Usage() {
  std::fputs(
      "usage: make_trace PATH LINES plain|renumbered|inserted|changed|inserted-buffer|"
      "many-changes\n",
      stderr);
  return 64;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return Usage();
  const std::string_view count = argv[2];
  uint64_t lines = 0;
  const auto [end, failure] = std::from_chars(count.data(), count.data() + count.size(), lines);
  const auto variant = assay::bench::ParseSampleVariant(argv[3]);
  if (failure != std::errc() || end != count.data() + count.size() || !variant) return Usage();
  auto writer = assay::trace::TraceWriter::Create(argv[1], {});
  const assay::Status status = writer ? assay::bench::WriteSample(writer->get(), lines, *variant)
                                      : assay::Status(assay::Fail(writer.error()));
  if (status) return 0;
  std::fprintf(stderr, "make_trace: error: %s\n", status.error().ToString().c_str());
  return 2;
}
