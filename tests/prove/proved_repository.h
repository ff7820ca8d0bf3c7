// ProvedRepository: a small repository whose commits are proved with the program that was built.
#ifndef ASSAY_TESTS_PROVE_PROVED_REPOSITORY_H_
#define ASSAY_TESTS_PROVE_PROVED_REPOSITORY_H_

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/program.h"
#include "prove/process.h"
#include "support/temp_folder.h"

namespace assay {

// Lies in a folder of its own beside its cache; both go with it.
class ProvedRepository {
 public:
  ProvedRepository() {
    std::filesystem::create_directories(Folder());
    Git({"init", "-q", "-b", "main"});
  }

  std::string In(const std::string& name) const { return (dir_ / name).string(); }
  std::string Folder() const { return In("repo"); }
  std::string Cache() const { return In("cache"); }
  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(WriteFile(Folder() + "/" + name, text));
  }
  std::string Git(std::vector<std::string> words) const {
    words.insert(words.begin(), "git");
    const prove::ProcessResult result = prove::RunProcess(words, {.folder = Folder()}).value();
    EXPECT_EQ(result.exit_status, 0) << result.err;
    return result.out;
  }
  void Commit() const {
    Git({"add", "-A"});
    Git({"-c", "user.name=n", "-c", "user.email=e@e", "commit", "-q", "-m", "state"});
  }
  // `assay prove` of the working tree.
  ProgramResult Prove(std::vector<std::string> words) const {
    const std::vector<std::string> begin = {"prove", "--here", Folder(), "--cache", Cache()};
    words.insert(words.begin(), begin.begin(), begin.end());
    return RunAssay(words);
  }

 private:
  const TempFolder temp_;
  const std::filesystem::path dir_ = temp_.path();
};

}  // namespace assay

#endif  // ASSAY_TESTS_PROVE_PROVED_REPOSITORY_H_
