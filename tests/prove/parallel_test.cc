// A matrix of jobs under GNU parallel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prove/matrix_repository.h"

namespace assay {
namespace {

TEST(ProveParallel, P1_JobsThatRunAtOnceMakeTheMatrix) {
  const MatrixRepository repository;
  repository.Write("a-6", MatrixRepository::Plan(5));
  const std::string assay = std::string(ASSAY_PROGRAM) + " prove --matrix " + repository.Matrix();
  const std::string jobs = repository.In("jobs");
  const auto recorded = prove::RunProcess(
      {"sh", "-c",
       assay + " -q | " + ASSAY_PARALLEL + " -j 4 " + assay + " --cache " + repository.Cache() +
           " --job {} -o " + jobs + "/{} HEAD"},
      {.folder = repository.Folder(), .environment = {{"HOME", repository.In("home")}}});
  ASSERT_TRUE(recorded);
  ASSERT_EQ(recorded->exit_status, 0) << recorded->err << recorded->out;
  const auto merged = prove::RunProcess(
      {"sh", "-c", std::string(ASSAY_PROGRAM) + " prove -q --merge " + jobs + "/*"},
      {.folder = repository.Folder()});
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->exit_status, 3);
  EXPECT_EQ(merged->out,
            "prove: rc 3 (jobs 4, different 1; kernels rc 0, added 0; trace big.depth-0 rc 0, "
            "big.depth-6 rc 0, small.depth-0 rc 0, small.depth-6 rc 1; ids differ 1)\n");
}

}  // namespace
}  // namespace assay
