#include "support/gguf_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace assay::testing {
namespace {

constexpr size_t kBlockItems = 32;
constexpr uint32_t kTypeU32 = 4;
constexpr uint32_t kTypeI32 = 5;
constexpr uint32_t kTypeF32 = 6;
constexpr uint32_t kTypeBool = 7;
constexpr uint32_t kTypeString = 8;
constexpr uint32_t kTypeArray = 9;

template <typename T>
void PutLittleEndian(std::string* bytes, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) bytes->push_back(static_cast<char>(value >> (8 * i)));
}

uint16_t ToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 65520.0F) return static_cast<uint16_t>(sign | 0x7c00);
  // nearbyint rounds to nearest even; a half has 10 fraction bits and subnormals of 2^-24.
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int step = std::max(exponent - 11, -24);
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -step)));
  // units is below 2048 for subnormals and in [1024, 2048] otherwise, so that adding it to the
  // exponent carries by itself.
  const uint32_t half = units + (static_cast<uint32_t>(step + 24) << 10);
  return static_cast<uint16_t>(sign | half);
}

uint16_t ToBfloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 64);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

void PutQ8Block(std::string* bytes, std::span<const float> values) {
  float largest = 0.0F;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  const float scale = largest / 127.0F;
  const float inverse = scale != 0.0F ? 1.0F / scale : 0.0F;
  PutU16(bytes, ToHalf(scale));
  for (const float value : values) {
    bytes->push_back(static_cast<char>(static_cast<int8_t>(std::round(value * inverse))));
  }
}

void PutQ4Block(std::string* bytes, std::span<const float> values) {
  float largest = 0.0F;
  for (const float value : values) {
    if (std::fabs(value) > std::fabs(largest)) largest = value;
  }
  const float scale = largest / -8.0F;
  const float inverse = scale != 0.0F ? 1.0F / scale : 0.0F;
  PutU16(bytes, ToHalf(scale));
  const auto nibble = [&](size_t i) {
    return static_cast<uint8_t>(std::min(15, static_cast<int>(values[i] * inverse + 8.5F)));
  };
  for (size_t i = 0; i < kBlockItems / 2; ++i) {
    PutU8(bytes, static_cast<uint8_t>(nibble(i) | (nibble(i + kBlockItems / 2) << 4)));
  }
}

}  // namespace

std::string EncodeTensor(GgmlType type, std::span<const float> values) {
  std::string bytes;
  switch (type) {
    case kF32:
      for (const float value : values) PutF32(&bytes, value);
      break;
    case kF16:
      for (const float value : values) PutU16(&bytes, ToHalf(value));
      break;
    case kBF16:
      for (const float value : values) PutU16(&bytes, ToBfloat(value));
      break;
    case kQ8_0:
    case kQ4_0:
      for (size_t i = 0; i + kBlockItems <= values.size(); i += kBlockItems) {
        const auto block = values.subspan(i, kBlockItems);
        type == kQ8_0 ? PutQ8Block(&bytes, block) : PutQ4Block(&bytes, block);
      }
      break;
  }
  return bytes;
}

void PutU8(std::string* bytes, uint8_t value) { PutLittleEndian(bytes, value); }
void PutU16(std::string* bytes, uint16_t value) { PutLittleEndian(bytes, value); }
void PutU32(std::string* bytes, uint32_t value) { PutLittleEndian(bytes, value); }
void PutU64(std::string* bytes, uint64_t value) { PutLittleEndian(bytes, value); }
void PutF32(std::string* bytes, float value) { PutU32(bytes, std::bit_cast<uint32_t>(value)); }
void PutF64(std::string* bytes, double value) { PutU64(bytes, std::bit_cast<uint64_t>(value)); }
void PutString(std::string* bytes, std::string_view text) {
  PutU64(bytes, text.size());
  *bytes += text;
}

void GgufWriter::PutKey(std::string_view key, uint32_t type) {
  PutString(&metadata_, key);
  PutU32(&metadata_, type);
  ++key_count_;
}

void GgufWriter::AddU32(std::string_view key, uint32_t value) {
  PutKey(key, kTypeU32);
  PutU32(&metadata_, value);
}

void GgufWriter::AddF32(std::string_view key, float value) {
  PutKey(key, kTypeF32);
  PutF32(&metadata_, value);
}

void GgufWriter::AddBool(std::string_view key, bool value) {
  PutKey(key, kTypeBool);
  PutU8(&metadata_, value ? 1 : 0);
}

void GgufWriter::AddString(std::string_view key, std::string_view value) {
  PutKey(key, kTypeString);
  PutString(&metadata_, value);
}

void GgufWriter::AddStrings(std::string_view key, std::span<const std::string> values) {
  PutKey(key, kTypeArray);
  PutU32(&metadata_, kTypeString);
  PutU64(&metadata_, values.size());
  for (const std::string& value : values) PutString(&metadata_, value);
}

void GgufWriter::AddI32s(std::string_view key, std::span<const int32_t> values) {
  PutKey(key, kTypeArray);
  PutU32(&metadata_, kTypeI32);
  PutU64(&metadata_, values.size());
  for (const int32_t value : values) PutU32(&metadata_, static_cast<uint32_t>(value));
}

void GgufWriter::AddF32s(std::string_view key, std::span<const float> values) {
  PutKey(key, kTypeArray);
  PutU32(&metadata_, kTypeF32);
  PutU64(&metadata_, values.size());
  for (const float value : values) PutF32(&metadata_, value);
}

void GgufWriter::AddRaw(std::string_view key, uint32_t type, std::string_view payload) {
  PutKey(key, type);
  metadata_ += payload;
}

void GgufWriter::AddTensor(std::string_view name, uint32_t type, const std::vector<uint64_t>& dims,
                           std::string_view data) {
  data_.resize((data_.size() + alignment_ - 1) / alignment_ * alignment_, '\0');
  AddTensorAt(name, type, dims, data_.size());
  data_ += data;
}

void GgufWriter::AddTensor(std::string_view name, GgmlType type, const std::vector<uint64_t>& dims,
                           std::span<const float> values) {
  AddTensor(name, static_cast<uint32_t>(type), dims, EncodeTensor(type, values));
}

void GgufWriter::AddTensorAt(std::string_view name, uint32_t type,
                             const std::vector<uint64_t>& dims, uint64_t offset) {
  PutString(&tensor_infos_, name);
  PutU32(&tensor_infos_, static_cast<uint32_t>(dims.size()));
  for (const uint64_t dim : dims) PutU64(&tensor_infos_, dim);
  PutU32(&tensor_infos_, type);
  PutU64(&tensor_infos_, offset);
  ++tensor_count_;
}

std::string GgufWriter::Header() const {
  std::string bytes = "GGUF";
  PutU32(&bytes, version_);
  PutU64(&bytes, tensor_count_);
  PutU64(&bytes, key_count_);
  return bytes + metadata_ + tensor_infos_;
}

std::string GgufWriter::Build() const {
  std::string bytes = Header();
  if (!data_.empty()) {
    bytes.resize((bytes.size() + alignment_ - 1) / alignment_ * alignment_, '\0');
  }
  return bytes + data_;
}

}  // namespace assay::testing
