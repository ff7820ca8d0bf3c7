// Where one tree is built and recorded: a folder of the cache that holds, for one state of a tree
// and one set of build commands,
//
//   source/            the worktree; only while a run works on it
//   build/             what the build commands made; kept
//   built              written when all of them had succeeded
//   evidence-<key>/    what one set of record commands left; kept
//   logs/              one file a command
#ifndef ASSAY_PROVE_BUILD_SITE_H_
#define ASSAY_PROVE_BUILD_SITE_H_

#include <memory>
#include <string>

#include "assay/base.h"
#include "assay/prove.h"

#include "prove/file_lock.h"
#include "prove/git.h"

namespace assay::prove {

// One run's hold on such a folder. Two runs that want the same one take turns; others do not meet.
// One thread.
class BuildSite final {
 public:
  // Waits for its turn. `copy` tells apart two builds of the same state (A/A); `toolchain` is what
  // else a build depends on, as the configuration's key command says it. Errors: kIo, kCancelled.
  static Result<std::unique_ptr<BuildSite>> Enter(const Repository& repository,
                                                  const TreeState& state, const Config& config,
                                                  const ProveOptions& options, int copy,
                                                  const std::string& toolchain);
  ~BuildSite() = default;
  BuildSite(const BuildSite&) = delete;
  BuildSite& operator=(const BuildSite&) = delete;

  // Sets side->evidence and side->cached, or adds to *refused what a command or its results say.
  Status Work(ProofSide* side, std::vector<Refusal>* refused);
  const std::string& folder() const { return folder_; }

 private:
  class Worktree;
  BuildSite(const Repository& repository, const TreeState& state, const Config& config,
            const ProveOptions& options);
  Status TakeTurn();
  // What a run that was killed left half done.
  void RemoveLeftovers() const;
  std::string In(std::string_view name) const;
  // True when the command succeeded; else adds to *refused_.
  Result<bool> RunCommand(const std::string& command, const std::string& log_name,
                          std::string_view doing, int64_t limit_s);
  Result<bool> Build();
  Result<bool> Record(const std::string& out);
  // Makes evidence of what the record commands left in `out`.
  Status Gather(const std::string& out, const std::string& evidence) const;
  void Say(std::string_view what);
  // The error of a stop at the step that was said last; `more` ends its sentence.
  tl::unexpected<Error> Stopped(std::string_view more) const;
  void Note(const std::string& what) const;

  const Repository& repository_;
  const TreeState& state_;
  const Config& config_;
  const ProveOptions& options_;
  std::string folder_;
  std::string role_;
  std::string step_;
  std::vector<Refusal>* refused_ = nullptr;
  FileLock lock_;
};

}  // namespace assay::prove

#endif  // ASSAY_PROVE_BUILD_SITE_H_
