// Input: one of the two traces of a comparison, which is read more than once.
#ifndef ASSAY_COMPARE_INPUT_H_
#define ASSAY_COMPARE_INPUT_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "assay/base.h"
#include "assay/trace.h"

#include "trace/source.h"

namespace assay::compare {

// Borrows the bytes and the stop function.
class Input final {
 public:
  static Input File(const std::string& path, const std::function<bool()>& stop) {
    return {path, {}, true, stop};
  }
  static Input Memory(std::string name, std::string_view bytes, const std::function<bool()>& stop) {
    return {std::move(name), bytes, false, stop};
  }

  const std::string& name() const { return name_; }
  // The text from its beginning, decompressed. Reading fails with kCancelled once the stop function
  // says so.
  Result<std::unique_ptr<trace::Source>> OpenText() const;
  // The same text, checked line by line. Whoever reads it asks stopped() now and then.
  Result<std::unique_ptr<trace::TraceReader>> OpenReader() const;
  bool stopped() const { return stop_ && stop_(); }

 private:
  Input(std::string name, std::string_view bytes, bool is_file, const std::function<bool()>& stop)
      : name_(std::move(name)), bytes_(bytes), is_file_(is_file), stop_(stop) {}

  std::string name_;
  std::string_view bytes_;
  bool is_file_;
  const std::function<bool()>& stop_;
};

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_INPUT_H_
