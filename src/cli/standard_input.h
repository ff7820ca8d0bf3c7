// Standard input, read to its end.
#ifndef ASSAY_CLI_STANDARD_INPUT_H_
#define ASSAY_CLI_STANDARD_INPUT_H_

#include <cstdint>
#include <string>

#include "assay/base.h"

#include "cli/context.h"

namespace assay::cli {

// All of what comes from `fd`, which is waited for. Errors: kCancelled once the user asks to stop,
// kFormat as soon as there are more than `max_bytes`, kIo.
Result<std::string> ReadToEnd(const Context& context, int fd, uint64_t max_bytes);

}  // namespace assay::cli

#endif  // ASSAY_CLI_STANDARD_INPUT_H_
