// The folder in which the sites of all runs lie (build_site.h): what of it may go, and what must.
#ifndef ASSAY_PROVE_SITE_CACHE_H_
#define ASSAY_PROVE_SITE_CACHE_H_

#include <cstdint>
#include <span>
#include <string>

#include "assay/base.h"

#include "prove/file_lock.h"
#include "prove/git.h"

namespace assay::prove {

// Takes away the worktrees of `repository` that dead runs left in `cache`: those of which nobody
// holds the site's lock.
void RemoveDeadWorktrees(const Repository& repository, const std::string& cache);

// Notes that `site` was used just now; `changed` measures it again.
void NoteUse(const std::string& site, bool changed);

// A hold on a site that keeps Prune() away from it while its evidence is read.
Result<FileLock> HoldSite(const std::string& site);

// Removes sites, the one used longest ago first, until all of them take at most `limit_bytes`.
// Those that a run holds or works on stay.
void Prune(const std::string& cache, uint64_t limit_bytes);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_SITE_CACHE_H_
