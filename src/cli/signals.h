// Signals: Ctrl-C and SIGTERM as a flag that commands poll.
#ifndef ASSAY_CLI_SIGNALS_H_
#define ASSAY_CLI_SIGNALS_H_

#include <atomic>

namespace assay::cli {

// From here on the first SIGINT or SIGTERM only sets the flag that is returned, so that a command
// can remove its partial files; the second ends the program at once. SIGPIPE and SIGXFSZ are
// ignored: a closed pipe, and a file that would pass the limit on its size, show as failed writes.
// Call once, before any thread starts.
const std::atomic<int>& CatchStopSignals();

// Opens what is missing of descriptors 0, 1 and 2, so that no file that is opened later gets one of
// their numbers and the report of a command is written into it. Writing to a stand-in fails.
void HoldStandardDescriptors();

}  // namespace assay::cli

#endif  // ASSAY_CLI_SIGNALS_H_
