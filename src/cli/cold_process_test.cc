// The program itself, each time in a new process.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "support/temp_folder.h"

namespace assay::cli {
namespace {

// Runs the program with `arguments`, which a shell reads, and returns what it printed.
std::string RunAssay(const std::string& arguments) {
  const std::string command = std::string(ASSAY_PROGRAM) + " " + arguments;
  FILE* const pipe = ::popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  if (pipe == nullptr) return "";
  std::string out;
  std::array<char, 4096> piece;
  for (size_t got = 0; (got = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
    out.append(piece.data(), got);
  }
  const int status = ::pclose(pipe);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
  return out;
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ColdProcess, G5_LogitsHaveTheSameBits) {
  std::string first;
  for (const std::string flags : {"-t 1 --loaders 1", "-t 2 --loaders 4", "-t 3 --loaders 2",
                                  "-t 8 --loaders 8", "-t 1 --loaders 1 --mmap"}) {
    const auto json = nlohmann::json::parse(
        RunAssay("run -q --json -n 24 -p 'There was once a fox who' " + flags));
    const auto digest = json["logits_digest"].get<std::string>();
    if (first.empty()) first = digest;
    EXPECT_EQ(digest, first) << flags;
  }
}

TEST(ColdProcess, T2_TracesHaveTheSameBytes) {
  const TempFolder temp;
  const std::filesystem::path& folder = temp.path();
  const auto record = [&](const std::string& name, const std::string& flags) {
    RunAssay("trace -q --depth 0,40 --steps 3 " + flags + " -o '" + (folder / name).string() + "'");
  };
  record("a", "--loaders 4 -t 2");
  record("b", "--loaders 1 -t 1");
  record("c", "--loaders 8 -t 3");
  for (const std::string file : {"depth-0.trace", "depth-40.trace", "ids.json"}) {
    const std::string first = ReadAll(folder / "a" / file);
    EXPECT_FALSE(first.empty());
    EXPECT_EQ(ReadAll(folder / "b" / file), first) << file;
    EXPECT_EQ(ReadAll(folder / "c" / file), first) << file;
  }
}

}  // namespace
}  // namespace assay::cli
