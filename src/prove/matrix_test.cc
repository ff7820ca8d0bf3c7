#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/prove_matrix.h"

namespace assay::prove {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Ids(const std::string& text) {
  std::vector<std::string> ids;
  const Result<Matrix> matrix = ParseMatrix(text, "matrix.toml");
  EXPECT_TRUE(matrix) << matrix.error().ToString();
  if (matrix) {
    for (const MatrixJob& job : matrix->jobs) ids.push_back(job.id);
  }
  return ids;
}

// "n0", "n1", ... in quotes.
std::string ManyNames(int count) {
  std::string names;
  for (int i = 0; i < count; ++i) {
    names.append(i == 0 ? "" : ", ").append("\"n").append(std::to_string(i)).append("\"");
  }
  return names;
}

Config ConfigWith(const std::string& command) {
  Config config;
  config.path = "assay.toml";
  config.record_commands = {command};
  return config;
}

TEST(Matrix, P1_IdsAreTheWordsOfTheAxesWhateverTheirOrder) {
  EXPECT_THAT(
      Ids("[matrix]\nmodels = [\"b\", \"a\"]\nbackends = [\"y\", \"x\"]\ndepths = [2, 10]\n"),
      ElementsAre("a.x.depth-2", "a.x.depth-10", "a.y.depth-2", "a.y.depth-10", "b.x.depth-2",
                  "b.x.depth-10", "b.y.depth-2", "b.y.depth-10"));
  EXPECT_EQ(Ids("[matrix]\ndepths = [2]\nbackends = [\"x\", \"y\"]\nmodels = [\"a\", \"b\"]\n"),
            Ids("[matrix]\nmodels = [\"b\", \"a\"]\nbackends = [\"y\", \"x\"]\ndepths = [2]\n"));
  EXPECT_THAT(Ids("[matrix]\ndepths = [0, 600]\n"), ElementsAre("depth-0", "depth-600"));
}

TEST(Matrix, P1_AJobHasTheValuesOfItsRows) {
  const Matrix matrix =
      ParseMatrix(
          "[matrix]\nmodels = [\"m\"]\nbackends = [\"cpu\"]\ndepths = [7]\n"
          "[models.m]\nfile = \"x.gguf\"\nsteps = 8\n[backends.cpu]\ndevice = \"zero\"\n",
          "matrix.toml")
          .value();
  const MatrixJob job = FindJob(matrix, "m.cpu.depth-7").value();
  EXPECT_EQ(job.model_file, "x.gguf");
  EXPECT_EQ(job.depth, 7);
  EXPECT_THAT(job.variables,
              ElementsAre(testing::Pair("backend", "cpu"), testing::Pair("device", "zero"),
                          testing::Pair("steps", "8")));
  EXPECT_THAT(VariablesOf(matrix), ElementsAre("backend", "device", "steps"));
}

TEST(Matrix, P1_WhatIsWrongIsNamedWithLineAndColumn) {
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"[matrix\n", "line 1, column 8: this is no TOML: "},
      {"", "there is no [matrix]"},
      {"matrix = 1\n", "line 1, column 10: \"matrix\" must be a table"},
      {"# Nothing else.\n[matrix]\n",
       "line 2, column 1: \"depths\" of [matrix] must name at least one depth"},
      {"[matrix]\ndepths = []\n",
       "line 2, column 10: \"depths\" of [matrix] must name at least one depth"},
      {"[matrix]\ndepths = [0, -1]\n", "line 2, column 14: \"depths\" must hold whole numbers"},
      {"[matrix]\ndepths = [3, 3]\n", "line 2, column 14: \"depths\" must rise"},
      {"[matrix]\ndepth = [0]\n",
       "line 2, column 1: There is no key \"depth\" in [matrix]; did "
       "you mean \"depths\"?"},
      {"[matrix]\ndepths = [0]\nmodels = []\n", "line 3, column 10: \"models\" must name"},
      {"[matrix]\ndepths = [0]\nmodels = [\"a\", \"a\"]\n",
       "line 3, column 16: \"models\" names \"a\" twice"},
      {"[matrix]\ndepths = [0]\nmodels = [\"a/b\"]\n",
       "line 3, column 11: \"a/b\" cannot be a part of the id"},
      {"[matrix]\ndepths = [0]\nbackends = [\"-x\"]\n", "cannot be a part of the id"},
      {"[matrix]\ndepths = [0]\nmodels = [\"abc\"]\n[models.abd]\n",
       "line 4, column 9: There is no key \"abd\" in \"models\" of [matrix]; did you mean "
       "\"abc\"?"},
      {"[matrix]\ndepths = [0]\nmodels = [\"a\"]\n[models.a]\nfile = 3\n",
       "line 5, column 8: \"file\" must be a text"},
      {"[matrix]\ndepths = [0]\nmodels = [\"a\"]\n[models.a]\nX = \"y\"\n",
       "line 5, column 1: \"X\" cannot stand in braces"},
      {"[matrix]\ndepths = [0]\nmodels = [\"a\"]\n[models.a]\nout = \"y\"\n",
       "line 5, column 1: {out} stands for something already"},
      {"[matrix]\ndepths = [0]\nmodels = [\"a\"]\n[models.a]\nbackend = \"y\"\n",
       "line 5, column 11: {backend} is the name"},
      {"[matrix]\ndepths = [0]\nmodels = [\"a\"]\n[models.a]\nx = [1]\n",
       "line 5, column 5: \"x\" must be a text in quotes or a whole number"},
      {"[matrix]\ndepths = [0]\nmodels = [\"a\"]\nbackends = [\"b\"]\n[models.a]\nx = 1\n"
       "[backends.b]\nx = 1\n",
       "line 8, column 5: both [models.a] and [backends.b] say what {x} is"},
      {"[matrix]\nmodels = [" + ManyNames(400) + "]\nbackends = [" + ManyNames(400) +
           "]\ndepths = [0]\n",
       "line 1, column 1: 160000 jobs are more than 100000"},
      {"[matrix]\ndepths = [0]\n[model.a]\n", "did you mean \"models\"?"},
  };
  for (const auto& each : cases) {
    const Result<Matrix> matrix = ParseMatrix(each.text, "matrix.toml");
    ASSERT_FALSE(matrix) << each.text;
    EXPECT_EQ(matrix.error().code(), ErrorCode::kFormat);
    EXPECT_THAT(matrix.error().message(), HasSubstr(each.message)) << each.text;
    EXPECT_THAT(matrix.error().message(), testing::Not(HasSubstr("?.")));
    EXPECT_THAT(matrix.error().message(), testing::Not(HasSubstr("..")));
  }
}

TEST(Matrix, P1_AMatrixThatChangesNothingIsRefused) {
  Config config = ConfigWith("");
  const auto check = [&config](const std::string& matrix, const std::string& command) {
    config.record_commands = {command};
    const Status status = CheckMatrix(ParseMatrix(matrix, "matrix.toml").value(), config);
    return status ? std::string() : status.error().message();
  };
  const std::string two = "[matrix]\ndepths = [0, 1]\nmodels = [\"a\"]\n";
  EXPECT_EQ(check(two, "run {depth}"), "");
  EXPECT_THAT(check(two, "run"),
              HasSubstr("\"matrix.toml\" line 1: jobs a.depth-0 and a.depth-1 would "
                        "run the same record commands"));
  EXPECT_THAT(check(two + "[models.a]\nx = 1\n", "run {depth}"),
              HasSubstr("\"matrix.toml\" line 5: {x} has a value, but no record command of "
                        "\"assay.toml\" uses it."));
  EXPECT_THAT(check(two + "[models.a]\nfile = \"f\"\n", "run {depth}"),
              HasSubstr("\"matrix.toml\" line 5: [models.a] names a file, but no record command"));
  const std::string some = "[matrix]\ndepths = [0]\nmodels = [\"a\", \"b\"]\n[models.a]\nx = 1\n";
  EXPECT_THAT(check(some, "run {x}"),
              HasSubstr("\"matrix.toml\" line 1: job b.depth-0 has no value"));
  const std::string backends = "[matrix]\ndepths = [0]\nbackends = [\"a\", \"b\"]\n";
  EXPECT_THAT(check(backends, "run"), HasSubstr("would run the same"));
  EXPECT_EQ(check(backends, "run {backend}"), "");
  // What a job of a matrix has no model for cannot be mended with --model, which it does not take.
  EXPECT_THAT(check("[matrix]\ndepths = [0]\n", "run {model}"),
              AllOf(HasSubstr("\"matrix.toml\" line 1: job depth-0 has no model, and a record "
                              "command uses {model}; "),
                    HasSubstr("\"models\" of [matrix] with a \"file\" each"),
                    HasSubstr("\"model\" of [record] in \"assay.toml\""),
                    testing::Not(HasSubstr("--model"))));
  EXPECT_THAT(check(two + "[models.a]\n", "run {model} {depth}"),
              HasSubstr("\"matrix.toml\" line 4: job a.depth-0 has no model"));
  config.model = "/m.gguf";
  EXPECT_EQ(check("[matrix]\ndepths = [0]\n", "run {model}"), "");
}

}  // namespace
}  // namespace assay::prove
