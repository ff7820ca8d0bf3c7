// The repository that is proved, through the program git. Nothing here writes to its working tree,
// index or stash.
#ifndef ASSAY_PROVE_GIT_H_
#define ASSAY_PROVE_GIT_H_

#include <functional>
#include <string>
#include <vector>

#include "assay/base.h"

#include "prove/file_lock.h"

namespace assay::prove {

// The state of a working tree: a commit, and what differs from it.
struct TreeState {
  std::string commit;                // In full.
  std::vector<std::string> changed;  // Files that differ from the commit, untracked ones included
                                     // and ignored ones not; relative, sorted.
  // Names commit and contents: the commit alone for a clean tree.
  std::string identity;
  // Links that lead out of the tree: what they name is no part of `identity`.
  std::vector<std::string> links_out;
};

// One thread; `stop` as in ProcessOptions.
class Repository final {
 public:
  // The repository that `folder` lies in. Errors: kNotFound when it lies in none, or when there is
  // no git.
  static Result<Repository> Find(const std::string& folder, std::function<bool()> stop);

  // The root of the working tree.
  const std::string& root() const { return root_; }
  // The full id of a revision; kNotFound when it names no commit.
  Result<std::string> Commit(const std::string& revision) const;
  // Of the working tree as it is. Error kUnsupported when git cannot tell: files that it was told
  // to overlook, submodules, other repositories inside the tree.
  Result<TreeState> State() const;
  // Sets state->links_out, of the commit and of the files that differ from it.
  Status FindLinksOut(TreeState* state) const;
  // True for a path inside the working tree that git lists as a file of it, or would.
  Result<bool> Sees(const std::string& path) const;
  // True for a file that git keeps: one of its index, or one of git's own in the working tree.
  Result<bool> Keeps(const std::string& path) const;
  // The folders of all worktrees in the repository's list; empty when git does not tell.
  std::vector<std::string> Worktrees() const;
  // Makes a worktree of `state` at `folder`: its commit checked out, and the files that differ
  // copied from the working tree. What an earlier process left there is taken away first. One at a
  // time in a repository, since git reads what another git has half written of its own worktree.
  Status AddWorktree(const TreeState& state, const std::string& folder) const;
  // Takes it away, from the disk and from the repository's list. Never stops for a signal.
  void RemoveWorktree(const std::string& folder) const;

 private:
  // Waits for other processes that change the list of worktrees. Nothing where the file system has
  // no locks. Error kCancelled.
  Result<FileLock> LockWorktrees(const std::function<bool()>& stop) const;
  // `path` from the root on, links followed; empty when it lies outside.
  std::string Inside(const std::string& path) const;
  Repository(std::string root, std::function<bool()> stop)
      : root_(std::move(root)), stop_(std::move(stop)) {}
  Result<std::string> Run(std::vector<std::string> words) const;
  // Error kUnsupported where git does not see all files of the tree as they are.
  Status CheckWhole(const std::string& index) const;
  Result<std::string> ContentDigest(const std::vector<std::string>& files) const;

  std::string root_;
  std::function<bool()> stop_;
};

}  // namespace assay::prove

#endif  // ASSAY_PROVE_GIT_H_
