// A folder beside another one, in which a writer makes what it then moves to its name in one step.
#ifndef ASSAY_PROVE_WORK_FOLDER_H_
#define ASSAY_PROVE_WORK_FOLDER_H_

#include <string>

#include "assay/base.h"

namespace assay::prove {

// Makes `<folder>.partial-<pid>-<n>`, empty. kIo, also when the folder around it does not exist.
Result<std::string> MakeWorkFolder(const std::string& folder);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_WORK_FOLDER_H_
