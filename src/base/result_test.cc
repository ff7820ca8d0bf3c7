#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/base.h"

namespace assay {
namespace {

Status Inner() { return Fail(ErrorCode::kIo, "disk", "The disk is full."); }
Status Outer() {
  ASSAY_TRY_WHILE(Inner(), "writing the trace");
  return {};
}
Result<int> Value(bool ok) {
  if (!ok) return Fail(ErrorCode::kNotFound, "x", "No x.");
  return 7;
}
Result<int> Plus1(bool ok) {
  ASSAY_ASSIGN_OR_RETURN(const int value, Value(ok));
  return value + 1;
}

TEST(ErrorTest, CarriesCodeSubjectAndContext) {
  const Status status = Outer();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kIo);
  EXPECT_EQ(status.error().subject(), "disk");
  EXPECT_EQ(status.error().ToString(), "The disk is full. This was while writing the trace.");
}

TEST(ErrorTest, WhatWasBeingDoneIsASentence) {
  const auto error = [](std::string message) {
    return Error(ErrorCode::kFormat, "", std::move(message)).While("reading a").While("loading b");
  };
  EXPECT_EQ(error("It is cut.").ToString(),
            "It is cut. This was while reading a, while loading b.");
  EXPECT_EQ(error("Did you mean \"x\"?").ToString(),
            "Did you mean \"x\"? This was while reading a, while loading b.");
}

TEST(ErrorTest, StaysOneLine) {
  EXPECT_EQ(Error(ErrorCode::kFormat, "", "a\nb\x1b[").ToString(), "a?b?[");
}

TEST(ErrorTest, CodeNamesAreDistinct) {
  std::vector<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    names.push_back(ErrorCodeName(static_cast<ErrorCode>(i)));
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(ResultTest, AssignOrReturnPassesValueAndError) {
  EXPECT_EQ(Plus1(true).value(), 8);
  EXPECT_EQ(Plus1(false).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace assay
