// The style, the frame and the script of the page, from src/prove/report, put into the program by
// cmake/EmbedReport.cmake.
#ifndef ASSAY_PROVE_REPORT_ASSETS_H_
#define ASSAY_PROVE_REPORT_ASSETS_H_

#include <string_view>

namespace assay::prove {

struct ReportAssets {
  std::string_view style, viewer, script;
  // What a content security policy calls them: "sha256-" and the digest in base 64.
  std::string_view style_source, script_source;
};
const ReportAssets& Assets();

}  // namespace assay::prove

#endif  // ASSAY_PROVE_REPORT_ASSETS_H_
