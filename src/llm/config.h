// Reading a model's shape from the keys of its file, each value within bounds that keep every later
// product of them in range.
#ifndef ASSAY_LLM_CONFIG_H_
#define ASSAY_LLM_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "assay/base.h"
#include "assay/llm.h"

namespace assay::llm {

// The keys of one architecture, "<architecture>.<name>", read with limits.
class ConfigReader final {
 public:
  // Borrows `file`.
  ConfigReader(const gguf::File& file, std::string architecture)
      : file_(file), architecture_(std::move(architecture)) {}

  // Errors: kNotFound when the key is absent, kFormat when its value is no integer of [min, max],
  // with key, value and limits.
  Result<uint32_t> Count(std::string_view name, uint32_t min, uint32_t max) const;
  // The same, but an absent key means `fallback`.
  Result<uint32_t> CountOr(std::string_view name, uint32_t min, uint32_t max,
                           uint32_t fallback) const;
  // A finite number of [min, max].
  Result<float> Number(std::string_view name, double min, double max) const;
  Result<float> NumberOr(std::string_view name, double min, double max, double fallback) const;

  bool Has(std::string_view name) const;
  std::string Key(std::string_view name) const;
  const gguf::File& file() const { return file_; }

 private:
  const gguf::File& file_;
  std::string architecture_;
};

// The largest feed-forward width, of a dense layer or of one expert.
inline constexpr uint32_t kMaxFeedForward = 1 << 20;
// The largest number of experts of a layer.
inline constexpr uint32_t kMaxExperts = 1024;

}  // namespace assay::llm

#endif  // ASSAY_LLM_CONFIG_H_
