#include "support/reference_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace assay::testing {
namespace {

double HalfToDouble(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double value = 0;
  if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else if (exponent == 31) {
    value = fraction == 0 ? HUGE_VAL : NAN;
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

template <typename T>
T ReadAt(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// What the stored bytes stand for, exactly.
std::vector<double> DecodeTensor(gguf::TensorType type, std::span<const std::byte> bytes) {
  std::vector<double> values;
  switch (type) {
    case gguf::TensorType::kF32:
      for (size_t i = 0; i < bytes.size(); i += 4) values.push_back(ReadAt<float>(bytes, i));
      break;
    case gguf::TensorType::kF16:
      for (size_t i = 0; i < bytes.size(); i += 2) {
        values.push_back(HalfToDouble(ReadAt<uint16_t>(bytes, i)));
      }
      break;
    case gguf::TensorType::kBF16:
      for (size_t i = 0; i < bytes.size(); i += 2) {
        values.push_back(std::bit_cast<float>(uint32_t{ReadAt<uint16_t>(bytes, i)} << 16));
      }
      break;
    case gguf::TensorType::kQ8_0:
      for (size_t i = 0; i < bytes.size(); i += 34) {
        const double scale = HalfToDouble(ReadAt<uint16_t>(bytes, i));
        for (size_t j = 0; j < 32; ++j) values.push_back(scale * ReadAt<int8_t>(bytes, i + 2 + j));
      }
      break;
    case gguf::TensorType::kQ4_0:
      for (size_t i = 0; i < bytes.size(); i += 18) {
        const double scale = HalfToDouble(ReadAt<uint16_t>(bytes, i));
        // The low halves are the first 16 values, the high ones the last 16.
        for (size_t half = 0; half < 2; ++half) {
          for (size_t j = 0; j < 16; ++j) {
            const int pair = ReadAt<uint8_t>(bytes, i + 2 + j);
            values.push_back(scale * ((half == 0 ? pair & 15 : pair >> 4) - 8));
          }
        }
      }
      break;
    default:
      std::abort();
  }
  return values;
}

void SoftMax(std::vector<double>& x) {
  const double top = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& value : x) sum += value = std::exp(value - top);
  for (double& value : x) value /= sum;
}

}  // namespace

ReferenceModel::ReferenceModel(const gguf::File& file) {
  const std::string arch = file.GetString("general.architecture").value();
  const auto count = [&](const std::string& key) { return file.GetUint(arch + "." + key).value(); };
  hidden_ = count("embedding_length");
  heads_ = count("attention.head_count");
  kv_heads_ = count("attention.head_count_kv");
  head_dim_ = count("attention.key_length");
  eps_ = file.GetDouble(arch + ".attention.layer_norm_rms_epsilon").value();
  rope_base_ = file.GetDouble(arch + ".rope.freq_base").value();
  if (arch == "qwen3moe") {
    experts_ = count("expert_count");
    experts_used_ = count("expert_used_count");
    feed_forward_ = count("expert_feed_forward_length");
  } else {
    feed_forward_ = count("feed_forward_length");
  }
  layers_.resize(count("block_count"));
  for (const gguf::Tensor& tensor : file.tensors()) {
    tensors_.emplace(tensor.name, DecodeTensor(tensor.type, file.TensorBytes(tensor)));
  }
  vocabulary_ = Values("token_embd.weight").size() / hidden_;
}

const ReferenceModel::Row& ReferenceModel::Values(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) std::abort();
  return found->second;
}

ReferenceModel::Row ReferenceModel::Multiply(const std::string& matrix, uint64_t first_row,
                                             uint64_t rows, const Row& x) const {
  const Row& values = Values(matrix);
  Row out(rows);
  for (uint64_t row = 0; row < rows; ++row) {
    const double* weights = values.data() + (first_row + row) * x.size();
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += weights[i] * x[i];
    out[row] = sum;
  }
  return out;
}

ReferenceModel::Row ReferenceModel::Norm(const Row& x, const std::string& weight) const {
  const Row& scale = Values(weight);
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps_);
  Row out(x.size());
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * factor * scale[i];
  return out;
}

void ReferenceModel::NormAndRotate(Row& x, const std::string& weight, uint64_t position) const {
  const size_t half = head_dim_ / 2;
  for (size_t head = 0; head < x.size() / head_dim_; ++head) {
    const auto begin = x.begin() + static_cast<ptrdiff_t>(head * head_dim_);
    const Row normed = Norm(Row(begin, begin + static_cast<ptrdiff_t>(head_dim_)), weight);
    double* out = x.data() + head * head_dim_;
    for (size_t j = 0; j < half; ++j) {
      const double angle =
          static_cast<double>(position) *
          std::pow(rope_base_, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim_));
      out[j] = normed[j] * std::cos(angle) - normed[j + half] * std::sin(angle);
      out[j + half] = normed[j] * std::sin(angle) + normed[j + half] * std::cos(angle);
    }
  }
}

ReferenceModel::Row ReferenceModel::Attend(uint32_t layer, const Row& x) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  Row q = Multiply(prefix + "attn_q.weight", 0, heads_ * head_dim_, x);
  Row k = Multiply(prefix + "attn_k.weight", 0, kv_heads_ * head_dim_, x);
  Row v = Multiply(prefix + "attn_v.weight", 0, kv_heads_ * head_dim_, x);
  NormAndRotate(q, prefix + "attn_q_norm.weight", position_);
  NormAndRotate(k, prefix + "attn_k_norm.weight", position_);
  Layer& cache = layers_[layer];
  cache.keys.push_back(std::move(k));
  cache.values.push_back(std::move(v));
  Row out(heads_ * head_dim_);
  for (size_t head = 0; head < heads_; ++head) {
    const size_t kv = head / (heads_ / kv_heads_) * head_dim_;
    Row scores;
    for (const Row& key : cache.keys) {
      double dot = 0;
      for (size_t i = 0; i < head_dim_; ++i) dot += q[head * head_dim_ + i] * key[kv + i];
      scores.push_back(dot / std::sqrt(static_cast<double>(head_dim_)));
    }
    SoftMax(scores);
    for (size_t p = 0; p < scores.size(); ++p) {
      for (size_t i = 0; i < head_dim_; ++i) {
        out[head * head_dim_ + i] += scores[p] * cache.values[p][kv + i];
      }
    }
  }
  return Multiply(prefix + "attn_output.weight", 0, hidden_, out);
}

ReferenceModel::Row ReferenceModel::Expert(const std::string& prefix, const std::string& suffix,
                                           uint64_t expert, const Row& x) const {
  const Row gate = Multiply(prefix + "ffn_gate" + suffix, expert * feed_forward_, feed_forward_, x);
  Row up = Multiply(prefix + "ffn_up" + suffix, expert * feed_forward_, feed_forward_, x);
  for (size_t i = 0; i < up.size(); ++i) up[i] *= gate[i] / (1 + std::exp(-gate[i]));
  return Multiply(prefix + "ffn_down" + suffix, expert * hidden_, hidden_, up);
}

ReferenceModel::Row ReferenceModel::FeedForward(uint32_t layer, const Row& x) const {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  if (experts_ == 0) return Expert(prefix, ".weight", 0, x);
  Row chances = Multiply(prefix + "ffn_gate_inp.weight", 0, experts_, x);
  SoftMax(chances);
  std::vector<uint64_t> order(experts_);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint64_t a, uint64_t b) { return chances[a] > chances[b]; });
  double sum = 0;
  for (size_t i = 0; i < experts_used_; ++i) sum += chances[order[i]];
  Row out(hidden_);
  for (size_t i = 0; i < experts_used_; ++i) {
    const Row one = Expert(prefix, "_exps.weight", order[i], x);
    for (size_t j = 0; j < hidden_; ++j) out[j] += chances[order[i]] / sum * one[j];
  }
  return out;
}

std::vector<double> ReferenceModel::Feed(llm::TokenId id) {
  const Row& embedding = Values("token_embd.weight");
  const auto begin =
      embedding.begin() + static_cast<ptrdiff_t>(id) * static_cast<ptrdiff_t>(hidden_);
  Row x(begin, begin + static_cast<ptrdiff_t>(hidden_));
  for (uint32_t layer = 0; layer < layers_.size(); ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const Row attended = Attend(layer, Norm(x, prefix + "attn_norm.weight"));
    for (size_t i = 0; i < hidden_; ++i) x[i] += attended[i];
    const Row fed = FeedForward(layer, Norm(x, prefix + "ffn_norm.weight"));
    for (size_t i = 0; i < hidden_; ++i) x[i] += fed[i];
  }
  ++position_;
  const bool tied = tensors_.count("output.weight") == 0;
  return Multiply(tied ? "token_embd.weight" : "output.weight", 0, vocabulary_,
                  Norm(x, "output_norm.weight"));
}

}  // namespace assay::testing
