#include "compare/input.h"

#include <utility>

namespace assay::compare {
namespace {

class StoppableSource final : public trace::Source {
 public:
  StoppableSource(std::unique_ptr<trace::Source> inner, const std::function<bool()>& stop,
                  std::string name)
      : inner_(std::move(inner)), stop_(stop), name_(std::move(name)) {}

  Result<size_t> Read(char* out, size_t capacity) override {
    if (stop_()) return Fail(ErrorCode::kCancelled, name_, "The comparison was stopped.");
    return inner_->Read(out, capacity);
  }

 private:
  std::unique_ptr<trace::Source> inner_;
  const std::function<bool()>& stop_;
  std::string name_;
};

}  // namespace

Result<std::unique_ptr<trace::Source>> Input::OpenText() const {
  auto source = is_file_ ? trace::OpenPathSource(name_) : trace::OpenMemorySource(bytes_, name_);
  if (!source || !stop_) return source;
  return std::unique_ptr<trace::Source>(
      std::make_unique<StoppableSource>(std::move(*source), stop_, name_));
}

Result<std::unique_ptr<trace::TraceReader>> Input::OpenReader() const {
  return is_file_ ? trace::TraceReader::Open(name_) : trace::TraceReader::FromMemory(bytes_, name_);
}

}  // namespace assay::compare
