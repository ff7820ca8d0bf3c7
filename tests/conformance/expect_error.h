// Errors are tested by code and by a part of the message.
#ifndef ASSAY_TESTS_CONFORMANCE_EXPECT_ERROR_H_
#define ASSAY_TESTS_CONFORMANCE_EXPECT_ERROR_H_

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/base.h"

namespace assay::testing {

// Holds for a Result that is an error of `code` whose text has `part`.
MATCHER_P2(FailsWith, code, part,
           "is an error " + std::string(ErrorCodeName(code)) + " with \"" + part + "\"") {
  if (arg.has_value()) {
    *result_listener << "which is no error";
    return false;
  }
  *result_listener << "which is " << ErrorCodeName(arg.error().code()) << ": "
                   << arg.error().ToString();
  return arg.error().code() == code && arg.error().ToString().find(part) != std::string::npos;
}

// Holds for a Result without an error.
MATCHER(Succeeds, "is no error") {
  if (!arg.has_value()) *result_listener << "which is " << arg.error().ToString();
  return arg.has_value();
}

}  // namespace assay::testing

#endif  // ASSAY_TESTS_CONFORMANCE_EXPECT_ERROR_H_
