// A folder beside another one, in which a writer makes what it then moves to its name in one step.
#ifndef ASSAY_PROVE_WORK_FOLDER_H_
#define ASSAY_PROVE_WORK_FOLDER_H_

#include <string>

#include "assay/base.h"

namespace assay::prove {

// `folder` as its writer means it: without a slash at its end, and where links lead, so that a link
// stays one.
std::string FolderTarget(const std::string& folder);

// Makes `<folder>.partial-<pid>-<n>`, empty. kIo, also when the folder around it does not exist.
Result<std::string> MakeWorkFolder(const std::string& folder);

// Gives `work` the mode of the empty folder `folder` that it is to take the place of, if there is
// one: whoever made that one private meant its contents.
void TakeOverMode(const std::string& folder, const std::string& work);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_WORK_FOLDER_H_
