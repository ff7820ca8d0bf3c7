// GgufWriter: builds the bytes of GGUF files for tests, correct ones and broken ones.
//
// It shares no code with the reader, so that an error of one does not hide in the other.
#ifndef ASSAY_TESTS_SUPPORT_GGUF_WRITER_H_
#define ASSAY_TESTS_SUPPORT_GGUF_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::testing {

// The file's numbers of tensor types.
enum GgmlType : uint32_t { kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ8_0 = 8, kBF16 = 30 };

// `values` stored as `type`: rounded to nearest even for F16 and BF16; in blocks of 32 for Q8_0
// (scale = largest magnitude / 127) and Q4_0 (scale = value of largest magnitude / -8). For the
// latter two the count must be a multiple of 32.
std::string EncodeTensor(GgmlType type, std::span<const float> values);

// Appends to `*bytes`, little-endian.
void PutU8(std::string* bytes, uint8_t value);
void PutU16(std::string* bytes, uint16_t value);
void PutU32(std::string* bytes, uint32_t value);
void PutU64(std::string* bytes, uint64_t value);
void PutF32(std::string* bytes, float value);
void PutF64(std::string* bytes, double value);
// Length and bytes.
void PutString(std::string* bytes, std::string_view text);

// Metadata and tensors are written in the order of the calls.
class GgufWriter final {
 public:
  explicit GgufWriter(uint32_t version = 3) : version_(version) {}

  // Tensors are placed at multiples of `alignment`; no key is written (AddU32 does that).
  void SetAlignment(uint64_t alignment) { alignment_ = alignment; }

  void AddU32(std::string_view key, uint32_t value);
  void AddF32(std::string_view key, float value);
  void AddBool(std::string_view key, bool value);
  void AddString(std::string_view key, std::string_view value);
  void AddStrings(std::string_view key, std::span<const std::string> values);
  void AddI32s(std::string_view key, std::span<const int32_t> values);
  void AddF32s(std::string_view key, std::span<const float> values);
  // `payload` is everything after the type number.
  void AddRaw(std::string_view key, uint32_t type, std::string_view payload);

  // dims[0] is the contiguous dimension.
  void AddTensor(std::string_view name, uint32_t type, const std::vector<uint64_t>& dims,
                 std::string_view data);
  void AddTensor(std::string_view name, GgmlType type, const std::vector<uint64_t>& dims,
                 std::span<const float> values);
  // The same with this offset into the data instead of the next free one, whatever `data` says.
  void AddTensorAt(std::string_view name, uint32_t type, const std::vector<uint64_t>& dims,
                   uint64_t offset);

  // What the header says instead of the number of calls.
  void OverrideTensorCount(uint64_t count) { tensor_count_ = count; }
  void OverrideKeyCount(uint64_t count) { key_count_ = count; }

  // Magic to the last tensor's offset.
  std::string Header() const;
  // The header, padding, and the tensors' data.
  std::string Build() const;

 private:
  void PutKey(std::string_view key, uint32_t type);

  uint32_t version_;
  uint64_t alignment_ = 32;
  uint64_t tensor_count_ = 0;
  uint64_t key_count_ = 0;
  std::string metadata_;
  std::string tensor_infos_;
  std::string data_;
};

}  // namespace assay::testing

#endif  // ASSAY_TESTS_SUPPORT_GGUF_WRITER_H_
