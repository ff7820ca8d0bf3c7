#include "prove/git.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "prove/process.h"

namespace assay::prove {
namespace {

namespace fs = std::filesystem;

// git in `folder`. Variables that a hook or another git sets for its own repository would point
// this one at it.
Result<ProcessResult> Git(const std::string& folder, std::vector<std::string> words,
                          std::vector<std::pair<std::string, std::string>> environment,
                          const std::function<bool()>& stop) {
  std::vector<std::string> command = {"git", "-c", "core.hooksPath=/dev/null", "-c",
                                      "core.fsmonitor=false"};
  command.insert(command.end(), words.begin(), words.end());
  environment.emplace_back("GIT_OPTIONAL_LOCKS", "0");
  environment.emplace_back("LC_ALL", "C");
  auto result =
      RunProcess(command, {.folder = folder,
                           .environment = environment,
                           .unset = {"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_PREFIX",
                                     "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"},
                           .stop = stop});
  if (result || result.error().code() != ErrorCode::kNotFound) return result;
  return Fail(ErrorCode::kNotFound, "git",
              "There is no program git in PATH. Proving two commits needs it: install git.");
}

std::string FirstLine(std::string_view text) { return Printable(text.substr(0, text.find('\n'))); }

std::vector<std::string> SplitZeros(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\0'), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// A copy of the index for git to refresh; removed at the end.
class IndexCopy final {
 public:
  static Result<IndexCopy> Make(const std::string& index) {
    std::string path = (fs::temp_directory_path() / "assay-index-XXXXXX").string();
    const int fd = ::mkstemp(path.data());
    if (fd < 0) {
      return Fail(ErrorCode::kIo, path,
                  fmt::format("Cannot make a file like \"{}\" for a copy of the index: {}.", path,
                              std::system_category().message(errno)));
    }
    ::close(fd);
    IndexCopy copy(path);
    std::error_code failure;
    if (fs::exists(index, failure)) {
      fs::copy_file(index, path, fs::copy_options::overwrite_existing, failure);
    } else {
      fs::remove(path, failure);  // git takes no file for an empty index, but not an empty file.
    }
    if (failure) {
      return Fail(ErrorCode::kIo, index,
                  fmt::format("Cannot copy \"{}\" to \"{}\": {}.", index, path, failure.message()));
    }
    return copy;
  }
  IndexCopy(IndexCopy&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  IndexCopy& operator=(IndexCopy&&) = delete;
  ~IndexCopy() {
    if (path_.empty()) return;
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit IndexCopy(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Status CopyFile(const fs::path& from, const fs::path& to) {
  std::error_code failure;
  const auto status = fs::symlink_status(from, failure);
  if (fs::is_directory(status)) return {};  // A submodule or a repository within.
  fs::remove_all(to, failure);
  if (!fs::exists(status)) return {};  // Deleted in the working tree.
  fs::create_directories(to.parent_path(), failure);
  if (!failure && fs::is_symlink(status)) {
    fs::copy_symlink(from, to, failure);
  } else if (!failure) {
    fs::copy_file(from, to, failure);
  }
  if (!failure) return {};
  return Fail(ErrorCode::kIo, from.string(),
              fmt::format("Cannot copy \"{}\" to \"{}\": {}.", from.string(), to.string(),
                          failure.message()));
}

}  // namespace

Result<Repository> Repository::Find(const std::string& folder, std::function<bool()> stop) {
  ASSAY_ASSIGN_OR_RETURN(const ProcessResult found,
                         Git(folder, {"rev-parse", "--show-toplevel"}, {}, stop));
  std::string root = found.out.substr(0, found.out.find('\n'));
  if (found.exit_status == 0 && !root.empty()) return Repository(std::move(root), std::move(stop));
  return Fail(ErrorCode::kNotFound, folder,
              fmt::format("\"{}\" lies in no working tree of a git repository ({}).", folder,
                          FirstLine(found.err)));
}

Result<std::string> Repository::Run(std::vector<std::string> words) const {
  const std::string name = words.front();
  ASSAY_ASSIGN_OR_RETURN(ProcessResult result, Git(root_, std::move(words), {}, stop_));
  if (result.exit_status == 0) return std::move(result.out);
  return Fail(ErrorCode::kIo, root_,
              fmt::format("git {} failed in \"{}\" with status {}: {}", name, root_,
                          result.exit_status, FirstLine(result.err)));
}

Result<std::string> Repository::Commit(const std::string& revision) const {
  ASSAY_ASSIGN_OR_RETURN(
      const ProcessResult found,
      Git(root_, {"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"},
          {}, stop_));
  std::string commit = found.out.substr(0, found.out.find('\n'));
  if (found.exit_status == 0 && !commit.empty()) return commit;
  return Fail(ErrorCode::kNotFound, revision,
              fmt::format("\"{}\" names no commit of the repository \"{}\".", revision, root_));
}

Result<std::string> Repository::ContentDigest(const std::vector<std::string>& files) const {
  Hasher hasher;
  for (const std::string& name : files) {
    const fs::path path = fs::path(root_) / name;
    std::error_code failure;
    const auto status = fs::symlink_status(path, failure);
    hasher.Update(name);
    if (fs::is_symlink(status)) {
      hasher.Update(" link " + fs::read_symlink(path, failure).string());
    } else if (fs::is_regular_file(status)) {
      const bool runs = (status.permissions() & fs::perms::owner_exec) != fs::perms::none;
      ASSAY_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path.string()));
      hasher.Update(fmt::format(" {} {} ", runs ? "program" : "file", file.bytes().size()));
      hasher.Update(file.bytes());
    } else {
      hasher.Update(fs::exists(status) ? " other" : " gone");
    }
    hasher.Update("\n");
  }
  return hasher.HexDigest();
}

Status Repository::CheckWhole(const std::string& index) const {
  const auto ask = [&](std::vector<std::string> words) {
    return Git(root_, std::move(words), {{"GIT_INDEX_FILE", index}}, stop_);
  };
  // "H NAME" is an ordinary file; a small letter means assume-unchanged, S skip-worktree.
  ASSAY_ASSIGN_OR_RETURN(const ProcessResult flags, ask({"ls-files", "-v", "-z"}));
  for (const std::string& entry : SplitZeros(flags.out)) {
    if (entry.size() < 3 || (entry[0] != 'S' && (entry[0] < 'a' || entry[0] > 'z'))) continue;
    const std::string name = entry.substr(2);
    std::error_code ignored;
    // A sparse checkout marks the files that it leaves out in the same way.
    if (!fs::exists(fs::symlink_status(fs::path(root_) / name, ignored))) continue;
    return Fail(ErrorCode::kUnsupported, root_,
                fmt::format("git was told to overlook changes of \"{}\" (assume-unchanged or "
                            "skip-worktree), so nobody can say whether it differs; clear the mark "
                            "with `git update-index --no-assume-unchanged --no-skip-worktree`.",
                            name));
  }
  ASSAY_ASSIGN_OR_RETURN(const ProcessResult modes, ask({"ls-files", "-s", "-z"}));
  for (const std::string& entry : SplitZeros(modes.out)) {
    if (!entry.starts_with("160000 ")) continue;
    return Fail(
        ErrorCode::kUnsupported, root_,
        fmt::format("\"{}\" is a submodule, which a proof does not check out; let the build "
                    "fetch what it needs by itself.",
                    entry.substr(entry.find('\t') + 1)));
  }
  return {};
}

Result<TreeState> Repository::State() const {
  TreeState state;
  ASSAY_ASSIGN_OR_RETURN(state.commit, Commit("HEAD"));
  ASSAY_ASSIGN_OR_RETURN(std::string index, Run({"rev-parse", "--git-path", "index"}));
  index = (fs::path(root_) / index.substr(0, index.find('\n'))).string();
  // git diff writes what it learns about unchanged files back to the index; to a copy it may.
  ASSAY_ASSIGN_OR_RETURN(const IndexCopy copy, IndexCopy::Make(index));
  ASSAY_TRY(CheckWhole(copy.path()));
  const std::vector<std::vector<std::string>> questions = {
      {"diff", "--no-ext-diff", "--no-renames", "--name-only", "-z", "HEAD"},
      {"ls-files", "--others", "--exclude-standard", "-z"}};
  for (const std::vector<std::string>& question : questions) {
    ASSAY_ASSIGN_OR_RETURN(const ProcessResult answer,
                           Git(root_, question, {{"GIT_INDEX_FILE", copy.path()}}, stop_));
    if (answer.exit_status != 0) {
      return Fail(ErrorCode::kIo, root_,
                  fmt::format("git {} failed in \"{}\": {}", question.front(), root_,
                              FirstLine(answer.err)));
    }
    for (std::string& name : SplitZeros(answer.out)) {
      if (name.ends_with('/')) {
        return Fail(
            ErrorCode::kUnsupported, root_,
            fmt::format("\"{}\" is a repository of its own inside the tree, whose files git "
                        "does not list; move it away, or let git ignore it.",
                        name));
      }
      state.changed.push_back(std::move(name));
    }
  }
  std::ranges::sort(state.changed);
  state.changed.erase(std::unique(state.changed.begin(), state.changed.end()), state.changed.end());
  state.identity = state.commit;
  if (!state.changed.empty()) {
    ASSAY_ASSIGN_OR_RETURN(const std::string digest, ContentDigest(state.changed));
    state.identity += "+" + digest;
  }
  return state;
}

Status Repository::FindLinksOut(TreeState* state) const {
  // Each name of a link to what it names.
  std::map<std::string, std::string> links;
  ASSAY_ASSIGN_OR_RETURN(const std::string tree, Run({"ls-tree", "-r", "-z", state->commit}));
  for (const std::string& entry : SplitZeros(tree)) {
    // "120000 blob ID<tab>NAME"
    const size_t tab = entry.find('\t');
    if (!entry.starts_with("120000 blob ") || tab == std::string::npos) continue;
    const std::string id = entry.substr(12, tab - 12);
    ASSAY_ASSIGN_OR_RETURN(links[entry.substr(tab + 1)], Run({"cat-file", "blob", id}));
  }
  for (const std::string& name : state->changed) {
    links.erase(name);
    std::error_code no_link;
    const fs::path target = fs::read_symlink(fs::path(root_) / name, no_link);
    if (!no_link) links[name] = target.string();
  }
  for (const auto& [name, target] : links) {
    const fs::path leads = (fs::path(name).parent_path() / target).lexically_normal();
    if (leads.is_absolute() || *leads.begin() == "..") state->links_out.push_back(name);
  }
  return {};
}

std::string Repository::Inside(const std::string& path) const {
  std::error_code ignored;
  const fs::path inside = fs::weakly_canonical(fs::absolute(path, ignored), ignored)
                              .lexically_relative(fs::weakly_canonical(root_, ignored));
  return inside.empty() || *inside.begin() == ".." ? std::string() : inside.string();
}

Result<bool> Repository::Keeps(const std::string& path) const {
  const fs::path inside = Inside(path);
  if (inside.empty()) return false;
  if (*inside.begin() == ".git") return true;
  ASSAY_ASSIGN_OR_RETURN(
      const ProcessResult asked,
      Git(root_, {"--literal-pathspecs", "ls-files", "--error-unmatch", "--", inside.string()}, {},
          stop_));
  return asked.exit_status == 0;
}

Result<bool> Repository::Sees(const std::string& path) const {
  const fs::path inside = Inside(path);
  if (inside.empty()) return false;
  if (inside == ".") return true;
  if (*inside.begin() == ".git") return false;
  // As a folder, which a pattern may ask for, even while there is none.
  ASSAY_ASSIGN_OR_RETURN(
      const ProcessResult asked,
      Git(root_, {"check-ignore", "--quiet", "--", inside.string() + "/"}, {}, stop_));
  return asked.exit_status != 0;
}

std::vector<std::string> Repository::Worktrees() const {
  std::vector<std::string> folders;
  const Result<std::string> list = Run({"worktree", "list", "--porcelain"});
  if (!list) return folders;
  constexpr std::string_view kBegin = "worktree ";
  std::string_view rest = *list;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    if (line.starts_with(kBegin)) folders.emplace_back(line.substr(kBegin.size()));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return folders;
}

Result<FileLock> Repository::LockWorktrees(const std::function<bool()>& stop) const {
  constexpr int kPollMs = 20;
  const Result<ProcessResult> common = Git(root_, {"rev-parse", "--git-common-dir"}, {}, stop);
  if (!common || common->exit_status != 0) return FileLock();
  const fs::path folder = fs::path(root_) / common->out.substr(0, common->out.find('\n'));
  Result<FileLock> lock = FileLock::OpenFolder(folder.string());
  if (!lock) return FileLock();
  for (;;) {
    const Result<bool> locked = lock->TryExclusive();
    if (!locked || *locked) return lock;
    if (stop && stop()) {
      return Fail(ErrorCode::kCancelled, root_,
                  fmt::format("Stopped while another run made a worktree of \"{}\".", root_));
    }
    ::poll(nullptr, 0, kPollMs);
  }
}

Status Repository::AddWorktree(const TreeState& state, const std::string& folder) const {
  std::error_code ignored;
  if (fs::exists(folder, ignored)) RemoveWorktree(folder);
  // --force: an entry that a killed process left in the list is taken over.
  const auto added = [&]() -> Result<std::string> {
    ASSAY_ASSIGN_OR_RETURN(const FileLock lock, LockWorktrees(stop_));
    return Run({"worktree", "add", "--force", "--detach", "--quiet", folder, state.commit});
  }();
  if (!added && added.error().code() == ErrorCode::kCancelled) return Fail(added.error());
  if (!added) {
    RemoveWorktree(folder);
    return Fail(added.error());
  }
  for (const std::string& name : state.changed) {
    ASSAY_TRY(CopyFile(fs::path(root_) / name, fs::path(folder) / name));
  }
  return {};
}

void Repository::RemoveWorktree(const std::string& folder) const {
  const Result<FileLock> lock = LockWorktrees(nullptr);
  // Twice --force also removes one that is locked, as a worktree is while it is being made. The
  // second time is for one of which git removed only a part.
  for (int i = 0; i < 2; ++i) {
    const auto removed =
        Git(root_, {"worktree", "remove", "--force", "--force", folder}, {}, nullptr);
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    if (removed && removed->exit_status == 0) return;
  }
}

}  // namespace assay::prove
