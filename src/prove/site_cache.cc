#include "prove/site_cache.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"

namespace assay::prove {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = "lock";
constexpr const char* kUsed = "used";        // Bytes of the site; its time is that of the last use.
constexpr const char* kReading = "reading";  // Locked by whoever reads evidence.

uint64_t BytesOf(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code failure;
  for (fs::recursive_directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    std::error_code ignored;
    if (!at->is_regular_file(ignored) || at->is_symlink(ignored)) continue;
    const uintmax_t size = at->file_size(ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

struct Site {
  fs::path folder;
  fs::file_time_type used;
  uint64_t bytes = 0;
};

// Only what NoteUse() marked: nothing else in the folder is known to be a site.
std::vector<Site> SitesOf(const std::string& cache) {
  std::vector<Site> sites;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(cache, failure)) {
    std::error_code unmarked;
    const fs::file_time_type used = fs::last_write_time(entry.path() / kUsed, unmarked);
    if (unmarked) continue;
    Site site{entry.path(), used, 0};
    const Result<std::string> text = ReadFile((entry.path() / kUsed).string());
    if (text) std::from_chars(text->data(), text->data() + text->size(), site.bytes);
    sites.push_back(std::move(site));
  }
  return sites;
}

// Locked, when nobody else has it and it is still the file of that name.
bool Locked(const fs::path& path, FileLock* lock) {
  Result<FileLock> opened = FileLock::Open(path.string());
  if (!opened) return false;
  *lock = std::move(*opened);
  const Result<bool> locked = lock->TryExclusive();
  return locked && *locked && lock->Stands();
}

}  // namespace

void RemoveDeadWorktrees(const Repository& repository, const std::string& cache) {
  std::error_code ignored;
  const fs::path ours = fs::weakly_canonical(cache, ignored);
  for (const std::string& worktree : repository.Worktrees()) {
    const fs::path site = fs::path(worktree).parent_path();
    if (fs::path(worktree).filename() != "source" || site.parent_path() != ours) continue;
    FileLock lock;
    // Without the site there is nobody who could work on it.
    if (fs::exists(site, ignored) && !Locked(site / kLock, &lock)) continue;
    repository.RemoveWorktree(worktree);
  }
}

void NoteUse(const std::string& site, bool changed) {
  const fs::path used = fs::path(site) / kUsed;
  std::error_code unmarked;
  if (!changed) fs::last_write_time(used, fs::file_time_type::clock::now(), unmarked);
  if (changed || unmarked) {
    // A site that cannot be marked is one that nobody prunes.
    static_cast<void>(WriteFile(used.string(), fmt::format("{}\n", BytesOf(site))).has_value());
  }
}

Result<FileLock> HoldSite(const std::string& site) {
  ASSAY_ASSIGN_OR_RETURN(FileLock lock, FileLock::Open((fs::path(site) / kReading).string()));
  // Nobody but Prune() locks it in another way, and only with the site's lock in hand.
  ASSAY_TRY(lock.TryShared());
  return lock;
}

void Prune(const std::string& cache, uint64_t limit_bytes) {
  std::vector<Site> sites = SitesOf(cache);
  uint64_t bytes = 0;
  for (const Site& site : sites) bytes += site.bytes;
  std::ranges::sort(sites, {}, &Site::used);
  for (const Site& site : sites) {
    if (bytes <= limit_bytes) return;
    FileLock lock;
    FileLock reading;
    if (!Locked(site.folder / kLock, &lock) || !Locked(site.folder / kReading, &reading)) continue;
    // The lock's own file goes last, so that nobody takes a half removed site for a whole one.
    std::error_code ignored;
    std::vector<fs::path> entries;
    for (const auto& entry : fs::directory_iterator(site.folder, ignored)) {
      if (entry.path().filename() != kLock) entries.push_back(entry.path());
    }
    for (const fs::path& entry : entries) fs::remove_all(entry, ignored);
    fs::remove_all(site.folder, ignored);
    bytes -= std::min(bytes, site.bytes);
  }
}

}  // namespace assay::prove
