#include "tests/faults/twins.h"

#include <utility>

#include <fmt/format.h>

#include "tests/faults/checking.h"

namespace assay::faults {

Twin MakeTwin(int kind, Catcher catcher, std::string_view name,
              const std::function<std::string(bool faulty)>& run, std::string finding,
              std::string remark) {
  return {.kind = kind,
          .catcher = catcher,
          .name = name,
          .racy = [run](int) { return run(true); },
          .clean = [run](int) { return run(false); },
          .finding = std::move(finding),
          .remark = std::move(remark)};
}

Twin ErrorTwin(int kind, Catcher catcher, std::string_view name,
               std::function<Status(bool faulty)> run, std::string_view code_and_subject,
               std::string part) {
  const std::string finding = fmt::format("{}: {}", code_and_subject, part);
  return MakeTwin(
      kind, catcher, name,
      [run = std::move(run), part = std::move(part)](bool faulty) {
        return Describe(run(faulty), part);
      },
      finding);
}

Twin GoldenTwin(int kind, std::string_view name, std::string golden, std::string finding) {
  return MakeTwin(
      kind, Catcher::kHazardCheck, name,
      [golden = std::move(golden)](bool faulty) {
        return CheckGolden(faulty ? golden : golden + "_near");
      },
      std::move(finding));
}

}  // namespace assay::faults
