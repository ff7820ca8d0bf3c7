// What a catcher says, in one line that a twin can state.
#ifndef ASSAY_TESTS_FAULTS_CHECKING_H_
#define ASSAY_TESTS_FAULTS_CHECKING_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "assay/base.h"
#include "assay/gpu.h"
#include "assay/hazard.h"

namespace assay::faults {

// The findings and notes of a report, as "raw 1:1 add -> 1:2 mul tmp[0,256)": rule, command buffer
// and dispatch of both sides, buffer and bytes. A merely possible one begins with "possible".
std::string Describe(const hazard::Report& report);

// What the checker says of `lines`, a trace without its first and its last line.
std::string CheckLines(std::string_view lines);
// Of tests/golden/hazard/NAME.trace.
std::string CheckGolden(std::string_view name);

// Records what `program` does on a device over the null backend and says what the checker finds.
// `around` may put a backend between the device and the recorder. A program that fails is described
// instead.
using Program = std::function<Status(gpu::Device& device)>;
using Around = std::function<std::unique_ptr<gpu::Backend>(std::unique_ptr<gpu::Backend> recorder)>;
std::string CheckProgram(const Program& program, const Around& around = nullptr);

// Records the same and drops each of its barriers in turn: "2 of 3 killed; 2: raw 1:2 add -> ...",
// with the pair that kills the mutant without barrier `shown` (from 1, over the whole trace). ""
// when all mutants survive.
std::string MutateProgram(const Program& program, size_t shown, const Around& around = nullptr);

// "" for success; "CODE SUBJECT: PART" for an error whose text has `part`; else all of its text.
std::string Describe(const Status& status, std::string_view part);

}  // namespace assay::faults

#endif  // ASSAY_TESTS_FAULTS_CHECKING_H_
