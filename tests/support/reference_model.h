// ReferenceModel: the forward pass of qwen3 and qwen3moe in plain loops of double, on the weights
// of a GGUF file as they decode exactly. It shares no code with the engine.
#ifndef ASSAY_TESTS_SUPPORT_REFERENCE_MODEL_H_
#define ASSAY_TESTS_SUPPORT_REFERENCE_MODEL_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "assay/llm.h"

namespace assay::testing {

// One sequence. Aborts on a file that is not such a model: tests give it good ones.
class ReferenceModel final {
 public:
  explicit ReferenceModel(const gguf::File& file);

  // Feeds one more id and returns the logits after it.
  std::vector<double> Feed(llm::TokenId id);

 private:
  using Row = std::vector<double>;
  struct Layer {
    std::vector<Row> keys, values;  // One row a position.
  };

  const Row& Values(const std::string& name) const;
  // `matrix` (rows x x.size(), from row `first_row` on) times x.
  Row Multiply(const std::string& matrix, uint64_t first_row, uint64_t rows, const Row& x) const;
  Row Norm(const Row& x, const std::string& weight) const;
  void NormAndRotate(Row& x, const std::string& weight, uint64_t position) const;
  Row Attend(uint32_t layer, const Row& x);
  Row FeedForward(uint32_t layer, const Row& x) const;
  Row Expert(const std::string& prefix, const std::string& suffix, uint64_t expert,
             const Row& x) const;

  std::map<std::string, Row> tensors_;
  std::vector<Layer> layers_;
  uint64_t hidden_ = 0, heads_ = 0, kv_heads_ = 0, head_dim_ = 0;
  uint64_t feed_forward_ = 0, experts_ = 0, experts_used_ = 0, vocabulary_ = 0;
  double eps_ = 0, rope_base_ = 0;
  uint64_t position_ = 0;
};

}  // namespace assay::testing

#endif  // ASSAY_TESTS_SUPPORT_REFERENCE_MODEL_H_
