// MatrixRepository: a repository with a matrix of two models and two depths, each with a plan of
// its own.
#ifndef ASSAY_TESTS_PROVE_MATRIX_REPOSITORY_H_
#define ASSAY_TESTS_PROVE_MATRIX_REPOSITORY_H_

#include <string>

#include "prove/proved_repository.h"

namespace assay {

class MatrixRepository : public ProvedRepository {
 public:
  MatrixRepository() {
    for (const char* plan : {"a-0", "a-6", "b-0", "b-6"}) Write(plan, Plan(2));
    Write("kernel", "source");
    Write("assay.toml", Config());
    Commit();
    EXPECT_TRUE(WriteFile(Matrix(), kMatrix));
  }

  static constexpr const char* kMatrix =
      "[matrix]\n"
      "models = [\"small\", \"big\"]\n"
      "depths = [0, 6]\n"
      "[models.small]\n"
      "plan = \"a\"\n"
      "[models.big]\n"
      "plan = \"b\"\n";
  std::string Matrix() const { return In("matrix.toml"); }
  static std::string Plan(int factor) {
    return "buffer a\nbuffer b\nscale " + std::to_string(factor) + " a b\ncommit\n";
  }
  static std::string Config() {
    return std::string(
               "[build]\ncommands = [\"cp {source}/?-? {source}/kernel {build}\"]\n"
               "[record]\ncommands = [\"") +
           ASSAY_PLAN_RECORDER + " {build}/{plan}-{depth} {build}/kernel {out} {depth}\"]\n";
  }
  // Runs one job into jobs/<id>.
  ProgramResult Job(const std::string& id) const {
    return Prove({"--matrix", Matrix(), "--job", id, "-o", JobFolder(id), "HEAD"});
  }
  std::string JobFolder(const std::string& id) const { return In("jobs/" + id); }
};

}  // namespace assay

#endif  // ASSAY_TESTS_PROVE_MATRIX_REPOSITORY_H_
