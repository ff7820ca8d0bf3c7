// Text from outside for HTML and XML.
#ifndef ASSAY_PROVE_MARKUP_H_
#define ASSAY_PROVE_MARKUP_H_

#include <string>
#include <string_view>

namespace assay::prove {

// `text` on one line, for an element or a quoted attribute: printable as base/text.h makes it, what
// has a meaning there escaped, and the two code points that XML cannot hold as bytes.
std::string Markup(std::string_view text);
// The same for several lines, each ending in a newline.
std::string MarkupLines(std::string_view text);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_MARKUP_H_
