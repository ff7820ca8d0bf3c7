#include "llm/gguf/header_reader.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "llm/gguf/cursor.h"
#include "llm/gguf/quoted.h"
#include "llm/gguf/tensor_type.h"

namespace assay::gguf {
namespace {

// The file's numbers for the types of metadata values.
enum class ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,  // One byte, 0 or 1.
  kString = 8,
  kArray = 9,  // An item type (uint32), a count (uint64), and the items.
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
constexpr uint32_t kMaxValueType = 12;

constexpr uint64_t kMaxDims = 4;
constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMinAlignment = 8;
// A key of one byte with a value of one byte; a tensor with a name of one byte and one dimension.
constexpr uint64_t kMinKeyValueBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorInfoBytes = 8 + 1 + 4 + 8 + 4 + 8;

// The fewest bytes that an item of an array takes in the file.
uint64_t MinItemBytes(ValueType type) {
  switch (type) {
    case ValueType::kUint8:
    case ValueType::kInt8:
    case ValueType::kBool:
      return 1;
    case ValueType::kUint16:
    case ValueType::kInt16:
      return 2;
    case ValueType::kUint32:
    case ValueType::kInt32:
    case ValueType::kFloat32:
      return 4;
    case ValueType::kString:
    case ValueType::kUint64:
    case ValueType::kInt64:
    case ValueType::kFloat64:
      return 8;
    case ValueType::kArray:
      return 12;
  }
  return 1;
}

class HeaderReader final {
 public:
  HeaderReader(const ByteSource* source, const Limits* limits)
      : limits_(*limits),
        source_(*source),
        cursor_(source, limits->max_header_bytes),
        memory_left_(limits->max_header_bytes) {}

  Result<Header> Read() {
    ASSAY_TRY(ReadMagic());
    ASSAY_TRY(ReadVersion());
    ASSAY_TRY(ReadCounts());
    for (uint64_t i = 0; i < key_count_; ++i) ASSAY_TRY(ReadKeyValue(i));
    ASSAY_TRY(ReadAlignment());
    for (uint64_t i = 0; i < tensor_count_; ++i) ASSAY_TRY(ReadTensorInfo(i));
    ASSAY_TRY(PlaceTensors());
    return std::move(header_);
  }

 private:
  Status ReadMagic() {
    if (source_.size() == 0) return cursor_.FailAt(0, "The file is empty; no model is in it.");
    ASSAY_ASSIGN_OR_RETURN(const auto magic, cursor_.Read<uint32_t>("The magic number"));
    constexpr uint32_t kMagic = 0x46554747;
    if (magic == kMagic) return {};
    const char bytes[4] = {static_cast<char>(magic), static_cast<char>(magic >> 8),
                           static_cast<char>(magic >> 16), static_cast<char>(magic >> 24)};
    const std::string_view text(bytes, sizeof(bytes));
    // The small text file that git leaves in place of a large one it did not fetch.
    const std::string_view hint =
        text == "vers" ? " It may be a Git LFS pointer: fetch the real file." : "";
    return cursor_.FailAt(0, fmt::format("The file begins with {}, not with \"GGUF\": it is no "
                                         "GGUF model.{}",
                                         Quoted(text), hint));
  }

  Status ReadVersion() {
    const uint64_t at = cursor_.offset();
    ASSAY_ASSIGN_OR_RETURN(header_.version, cursor_.Read<uint32_t>("The version"));
    if (header_.version == 2 || header_.version == 3) return {};
    if ((header_.version & 0xffff) == 0 && header_.version != 0) {
      return cursor_.FailAt(at,
                            fmt::format("The version reads 0x{:08x}: the file is big-endian, and "
                                        "only little-endian files are read.",
                                        header_.version),
                            ErrorCode::kUnsupported);
    }
    return cursor_.FailAt(
        at, fmt::format("GGUF version {} is not read, only 2 and 3.", header_.version),
        ErrorCode::kUnsupported);
  }

  Status ReadCounts() {
    const uint64_t at = cursor_.offset();
    ASSAY_ASSIGN_OR_RETURN(tensor_count_, cursor_.Read<uint64_t>("The tensor count"));
    ASSAY_ASSIGN_OR_RETURN(key_count_, cursor_.Read<uint64_t>("The metadata count"));
    ASSAY_TRY(CheckCount(at, "tensors", tensor_count_, limits_.max_tensors, kMinTensorInfoBytes));
    return CheckCount(at + 8, "metadata keys", key_count_, limits_.max_keys, kMinKeyValueBytes);
  }

  Status CheckCount(uint64_t at, std::string_view what, uint64_t count, uint64_t limit,
                    uint64_t least_bytes) {
    if (count > limit) {
      return cursor_.FailAt(at, fmt::format("The header counts {} {}, more than the {} allowed.",
                                            count, what, limit));
    }
    if (count > cursor_.remaining() / least_bytes) {
      return cursor_.FailAt(at, fmt::format("The header counts {} {} of at least {} bytes each, "
                                            "but only {} bytes follow.",
                                            count, what, least_bytes, cursor_.remaining()));
    }
    return {};
  }

  Status ReadKeyValue(uint64_t index) {
    const uint64_t at = cursor_.offset();
    ASSAY_ASSIGN_OR_RETURN(
        std::string key, cursor_.ReadString(std::min(kMaxKeyBytes, limits_.max_string_bytes),
                                            fmt::format("The name of metadata key {}", index + 1)));
    if (key.empty()) {
      return cursor_.FailAt(at, fmt::format("The name of metadata key {} is empty.", index + 1));
    }
    const auto [known, fresh] = keys_.emplace(key, index);
    if (!fresh) {
      return cursor_.FailAt(at, fmt::format("Metadata key {} stands twice (numbers {} and {}).",
                                            Quoted(key), known->second + 1, index + 1));
    }
    const std::string what = fmt::format("The value of metadata key {}", Quoted(key));
    ASSAY_TRY(TakeMemory(at, what, sizeof(header_.metadata[0]) + 2 * key.size()));
    ASSAY_ASSIGN_OR_RETURN(const ValueType type, ReadValueType(what));
    Value value;
    if (type == ValueType::kArray) {
      ASSAY_ASSIGN_OR_RETURN(value, ReadArray(what));
    } else {
      if (key == "general.alignment") alignment_at_ = cursor_.offset();
      ASSAY_ASSIGN_OR_RETURN(value, ReadScalar(type, what));
    }
    header_.metadata.emplace_back(std::move(key), std::move(value));
    return {};
  }

  Result<ValueType> ReadValueType(std::string_view what) {
    const uint64_t at = cursor_.offset();
    ASSAY_ASSIGN_OR_RETURN(const auto number, cursor_.Read<uint32_t>(what));
    if (number > kMaxValueType) {
      return cursor_.FailAt(
          at, fmt::format("{} has type {}; the types are 0 to {}.", what, number, kMaxValueType));
    }
    return static_cast<ValueType>(number);
  }

  Result<Value> ReadArray(std::string_view what) {
    const uint64_t at = cursor_.offset();
    ASSAY_ASSIGN_OR_RETURN(const ValueType type, ReadValueType(what));
    if (type == ValueType::kArray) {
      return cursor_.FailAt(at, fmt::format("{} is an array of arrays, which is not read.", what),
                            ErrorCode::kUnsupported);
    }
    const uint64_t count_at = cursor_.offset();
    ASSAY_ASSIGN_OR_RETURN(const auto count, cursor_.Read<uint64_t>(what));
    if (count > limits_.max_array_items) {
      return cursor_.FailAt(count_at, fmt::format("{} has {} items, more than the {} allowed.",
                                                  what, count, limits_.max_array_items));
    }
    if (count > cursor_.remaining() / MinItemBytes(type)) {
      return cursor_.FailAt(count_at,
                            fmt::format("{} has {} items of at least {} bytes each, but "
                                        "only {} bytes follow.",
                                        what, count, MinItemBytes(type), cursor_.remaining()));
    }
    ASSAY_TRY(TakeMemory(count_at, what, count * sizeof(Value)));
    Array items;
    items.reserve(static_cast<size_t>(count));
    for (uint64_t i = 0; i < count; ++i) {
      ASSAY_ASSIGN_OR_RETURN(Value item, ReadScalar(type, what));
      items.push_back(std::move(item));
    }
    return Value(std::move(items));
  }

  template <typename Stored, typename T>
  Result<Value> ReadAs(std::string_view what) {
    ASSAY_ASSIGN_OR_RETURN(const Stored stored, cursor_.Read<Stored>(what));
    return Value(static_cast<T>(stored));
  }

  Result<Value> ReadScalar(ValueType type, std::string_view what) {
    const uint64_t at = cursor_.offset();
    switch (type) {
      case ValueType::kUint8:
        return ReadAs<uint8_t, uint64_t>(what);
      case ValueType::kUint16:
        return ReadAs<uint16_t, uint64_t>(what);
      case ValueType::kUint32:
        return ReadAs<uint32_t, uint64_t>(what);
      case ValueType::kUint64:
        return ReadAs<uint64_t, uint64_t>(what);
      case ValueType::kInt8:
        return ReadAs<int8_t, int64_t>(what);
      case ValueType::kInt16:
        return ReadAs<int16_t, int64_t>(what);
      case ValueType::kInt32:
        return ReadAs<int32_t, int64_t>(what);
      case ValueType::kInt64:
        return ReadAs<int64_t, int64_t>(what);
      case ValueType::kFloat32:
        return ReadAs<float, double>(what);
      case ValueType::kFloat64:
        return ReadAs<double, double>(what);
      case ValueType::kBool: {
        ASSAY_ASSIGN_OR_RETURN(const auto byte, cursor_.Read<uint8_t>(what));
        if (byte > 1) {
          return cursor_.FailAt(
              at, fmt::format("{} is a truth value of {}; only 0 and 1 are.", what, byte));
        }
        return Value(byte == 1);
      }
      case ValueType::kString: {
        ASSAY_ASSIGN_OR_RETURN(std::string text,
                               cursor_.ReadString(limits_.max_string_bytes, what));
        ASSAY_TRY(TakeMemory(at, what, text.size()));
        return Value(std::move(text));
      }
      case ValueType::kArray:
        break;
    }
    return cursor_.FailAt(at, fmt::format("{} has no scalar type.", what), ErrorCode::kInternal);
  }

  // Values take more memory than bytes in the file (an 8-bit item: 40 times as much), so the limit
  // counts them too.
  Status TakeMemory(uint64_t at, std::string_view what, uint64_t bytes) {
    if (bytes > memory_left_) {
      return cursor_.FailAt(at, fmt::format("{} needs {} bytes of memory, but only {} are left of "
                                            "the {} that a header may take (max_header_bytes).",
                                            what, bytes, memory_left_, limits_.max_header_bytes));
    }
    memory_left_ -= bytes;
    return {};
  }

  Status ReadAlignment() {
    const auto key = keys_.find("general.alignment");
    if (key == keys_.end()) return {};
    const Value& value = header_.metadata[static_cast<size_t>(key->second)].second;
    const auto* number = std::get_if<uint64_t>(&value);
    if (number == nullptr) {
      return cursor_.FailAt(alignment_at_,
                            "Metadata key \"general.alignment\" is no unsigned integer.");
    }
    if (!std::has_single_bit(*number) || *number < kMinAlignment) {
      return cursor_.FailAt(
          alignment_at_, fmt::format("The alignment (general.alignment) is {}; it must be a power "
                                     "of two and at least {}.",
                                     *number, kMinAlignment));
    }
    header_.alignment = *number;
    return {};
  }

  Status ReadTensorInfo(uint64_t index) {
    const uint64_t at = cursor_.offset();
    Tensor tensor;
    ASSAY_ASSIGN_OR_RETURN(tensor.name,
                           cursor_.ReadString(std::min(kMaxKeyBytes, limits_.max_string_bytes),
                                              fmt::format("The name of tensor {}", index + 1)));
    if (tensor.name.empty()) {
      return cursor_.FailAt(at, fmt::format("The name of tensor {} is empty.", index + 1));
    }
    const auto [known, fresh] = tensor_names_.emplace(tensor.name, index);
    if (!fresh) {
      return cursor_.FailAt(at, fmt::format("Tensor {} stands twice (numbers {} and {}).",
                                            Quoted(tensor.name), known->second + 1, index + 1));
    }
    const std::string what = fmt::format("Tensor {}", Quoted(tensor.name));
    ASSAY_TRY(TakeMemory(at, what, sizeof(Tensor) + 2 * tensor.name.size() + 64));
    ASSAY_ASSIGN_OR_RETURN(const uint64_t items, ReadDims(what, &tensor));
    ASSAY_TRY(ReadTypeAndSize(what, items, &tensor));

    const uint64_t offset_at = cursor_.offset();
    ASSAY_ASSIGN_OR_RETURN(tensor.offset, cursor_.Read<uint64_t>(what));
    if (tensor.offset % header_.alignment != 0) {
      return cursor_.FailAt(offset_at, fmt::format("{} has offset {}, which is no multiple of the "
                                                   "alignment ({}).",
                                                   what, tensor.offset, header_.alignment));
    }
    offset_places_.push_back(offset_at);
    header_.tensors.push_back(std::move(tensor));
    return {};
  }

  // The number of values, which fits an int64.
  Result<uint64_t> ReadDims(std::string_view what, Tensor* tensor) {
    const uint64_t at = cursor_.offset();
    ASSAY_ASSIGN_OR_RETURN(const auto count, cursor_.Read<uint32_t>(what));
    if (count == 0 || count > kMaxDims) {
      return cursor_.FailAt(
          at, fmt::format("{} has {} dimensions; 1 to {} are allowed.", what, count, kMaxDims));
    }
    constexpr auto kMaxItems = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    uint64_t items = 1;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t dim_at = cursor_.offset();
      ASSAY_ASSIGN_OR_RETURN(const auto dim, cursor_.Read<uint64_t>(what));
      if (dim == 0) {
        return cursor_.FailAt(dim_at, fmt::format("{} has a dimension {} of 0.", what, i));
      }
      tensor->dims.push_back(dim);
      if (dim > kMaxItems / items) {
        return cursor_.FailAt(
            dim_at, fmt::format("{} has dimensions [{}], whose product passes the largest allowed, "
                                "{}.",
                                what, fmt::join(tensor->dims, ", "), kMaxItems));
      }
      items *= dim;
    }
    return items;
  }

  Status ReadTypeAndSize(std::string_view what, uint64_t items, Tensor* tensor) {
    const uint64_t at = cursor_.offset();
    ASSAY_ASSIGN_OR_RETURN(const auto number, cursor_.Read<uint32_t>(what));
    const auto block = FindBlockShape(number);
    if (!block) {
      const std::string_view name = GgmlTypeName(number);
      return cursor_.FailAt(
          at,
          fmt::format("{} has type {} ({}); the types read are F32, F16, BF16, Q8_0, Q4_0, Q4_K, "
                      "Q5_K and Q6_K.",
                      what, number, name.empty() ? "unknown" : name),
          ErrorCode::kUnsupported);
    }
    tensor->type = static_cast<TensorType>(number);
    if (tensor->dims[0] % block->items != 0) {
      return cursor_.FailAt(
          at, fmt::format("{} has a first dimension of {}, which is no multiple "
                          "of the {} values in a block of {}.",
                          what, tensor->dims[0], block->items, TensorTypeName(tensor->type)));
    }
    const uint64_t blocks = items / block->items;
    if (blocks > std::numeric_limits<uint64_t>::max() / block->bytes) {
      return cursor_.FailAt(at, fmt::format("{} has {} values of {}, whose size in bytes passes 64 "
                                            "bits.",
                                            what, items, TensorTypeName(tensor->type)));
    }
    tensor->size_bytes = blocks * block->bytes;
    return {};
  }

  // Turns offsets from the data's begin into offsets from the file's, and checks the ranges.
  Status PlaceTensors() {
    const uint64_t mask = header_.alignment - 1;
    // Cannot overflow: the header is far shorter than 2^63 bytes, and the mask is below that.
    header_.data_offset = (cursor_.offset() + mask) & ~mask;
    const uint64_t data_size = source_.size() - std::min(source_.size(), header_.data_offset);
    for (size_t i = 0; i < header_.tensors.size(); ++i) {
      Tensor& tensor = header_.tensors[i];
      if (tensor.offset > data_size || tensor.size_bytes > data_size - tensor.offset) {
        return cursor_.FailAt(
            offset_places_[i],
            fmt::format("Tensor {} takes {} bytes from byte {} of the data on, but the file has "
                        "only {} bytes of data: it is cut short or corrupt; fetch it again.",
                        Quoted(tensor.name), tensor.size_bytes, tensor.offset, data_size));
      }
      tensor.offset += header_.data_offset;
    }
    return CheckOverlaps();
  }

  Status CheckOverlaps() const {
    std::vector<size_t> order(header_.tensors.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](size_t i) { return header_.tensors[i].offset; });
    for (size_t k = 1; k < order.size(); ++k) {
      const Tensor& low = header_.tensors[order[k - 1]];
      const Tensor& high = header_.tensors[order[k]];
      if (low.offset + low.size_bytes > high.offset) {
        return cursor_.FailAt(
            offset_places_[order[k]],
            fmt::format("Tensor {} begins at byte {} of the file, inside tensor {}, which takes "
                        "bytes [{}, {}).",
                        Quoted(high.name), high.offset, Quoted(low.name), low.offset,
                        low.offset + low.size_bytes));
      }
    }
    return {};
  }

  const Limits& limits_;
  const ByteSource& source_;
  Cursor cursor_;
  uint64_t memory_left_;
  Header header_;
  uint64_t tensor_count_ = 0;
  uint64_t key_count_ = 0;
  uint64_t alignment_at_ = 0;
  // Ordered maps: names chosen by an attacker cannot make them slow.
  std::map<std::string, uint64_t, std::less<>> keys_;
  std::map<std::string, uint64_t, std::less<>> tensor_names_;
  // Where in the file each tensor's offset stands.
  std::vector<uint64_t> offset_places_;
};

}  // namespace

Result<Header> ReadHeader(const ByteSource& source, const Limits& limits) {
  return HeaderReader(&source, &limits).Read();
}

}  // namespace assay::gguf
