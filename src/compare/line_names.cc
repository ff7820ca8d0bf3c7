#include "compare/line_names.h"

namespace assay::compare {

LineNames::LineNames(std::string_view line) : line_(line) {
  const auto begin = [&](std::string_view word, Rest rest) {
    if (!line.starts_with(word)) return false;
    at_ = word.size();
    rest_ = rest;
    return true;
  };
  if (line.empty()) return;
  switch (line[0]) {
    case 'd':
      begin("dispatch k", Rest::kKernelThenBuffers);
      return;
    case 'b':
      begin("buffer #", Rest::kOneBuffer);
      return;
    case 'k':
      begin("kernel k", Rest::kOneKernel);
      return;
    case 'f':
      begin("free #", Rest::kOneBuffer);
      return;
    case 'w':
      begin("write #", Rest::kOneBuffer);
      return;
    case 'r':
      begin("read #", Rest::kOneBuffer);
      return;
    default:
      return;
  }
}

bool LineNames::Next(LineName* name) {
  switch (rest_) {
    case Rest::kNone:
      return false;
    case Rest::kKernelThenBuffers:
      name->is_kernel = true;
      rest_ = Rest::kBuffers;
      return ReadNumber(name);
    case Rest::kBuffers: {
      const size_t mark = line_.find('#', at_);
      if (mark == std::string_view::npos) return false;
      at_ = mark + 1;
      name->is_kernel = false;
      return ReadNumber(name);
    }
    case Rest::kOneBuffer:
    case Rest::kOneKernel:
      name->is_kernel = rest_ == Rest::kOneKernel;
      rest_ = Rest::kNone;
      return ReadNumber(name);
  }
  return false;
}

bool LineNames::ReadNumber(LineName* name) {
  name->begin = at_;
  name->number = 0;
  while (at_ < line_.size() && line_[at_] >= '0' && line_[at_] <= '9') {
    name->number = name->number * 10 + static_cast<uint64_t>(line_[at_] - '0');
    ++at_;
  }
  name->end = at_;
  return name->end > name->begin;
}

}  // namespace assay::compare
