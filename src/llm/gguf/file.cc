#include <limits>
#include <map>
#include <type_traits>

#include <fmt/format.h>

#include "assay/llm.h"

#include "llm/gguf/byte_source.h"
#include "llm/gguf/header_reader.h"
#include "llm/gguf/quoted.h"

namespace assay::gguf {

struct File::State {
  std::unique_ptr<ByteSource> source;
  Header header;
  // Views of the header's own strings.
  std::map<std::string_view, size_t> keys;
  std::map<std::string_view, size_t> tensors;
};

namespace {

template <typename Items, typename Name>
std::map<std::string_view, size_t> IndexByName(const Items& items, Name name) {
  std::map<std::string_view, size_t> index;
  for (size_t i = 0; i < items.size(); ++i) index.emplace(name(items[i]), i);
  return index;
}

std::string_view KindOf(const Value& value) {
  return std::visit(
      [](const auto& held) -> std::string_view {
        using Held = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>) return "a truth value";
        if constexpr (std::is_same_v<Held, double>) return "a floating-point number";
        if constexpr (std::is_same_v<Held, std::string>) return "a string";
        if constexpr (std::is_same_v<Held, Array>) return "an array";
        return "an integer";
      },
      static_cast<const std::variant<uint64_t, int64_t, double, bool, std::string, Array>&>(value));
}

tl::unexpected<Error> WrongType(const File& file, std::string_view key, const Value& value,
                                std::string_view wanted) {
  return Fail(ErrorCode::kFormat, file.name(),
              fmt::format("Metadata key {} of \"{}\" is {}, not {}.", Quoted(key), file.name(),
                          KindOf(value), wanted));
}

Result<const Value*> NeedKey(const File& file, std::string_view key) {
  const Value* value = file.FindKey(key);
  if (value == nullptr) {
    return Fail(ErrorCode::kNotFound, std::string(key),
                fmt::format("\"{}\" has no metadata key {}.", file.name(), Quoted(key)));
  }
  return value;
}

}  // namespace

File::File(std::unique_ptr<State> state) : state_(std::move(state)) {}
File::~File() = default;

Result<std::shared_ptr<const File>> File::Open(const std::string& path, const Limits& limits) {
  ASSAY_ASSIGN_OR_RETURN(auto source, ByteSource::Open(path));
  return FromSource(std::move(source), limits);
}

Result<std::shared_ptr<const File>> File::FromMemory(std::span<const std::byte> bytes,
                                                     std::string name, const Limits& limits) {
  return FromSource(ByteSource::Borrow(bytes, std::move(name)), limits);
}

Result<std::shared_ptr<const File>> File::FromSource(std::unique_ptr<ByteSource> source,
                                                     const Limits& limits) {
  auto state = std::make_unique<State>();
  ASSAY_ASSIGN_OR_RETURN(state->header, ReadHeader(*source, limits));
  state->source = std::move(source);
  state->keys = IndexByName(state->header.metadata,
                            [](const auto& item) { return std::string_view(item.first); });
  state->tensors = IndexByName(state->header.tensors,
                               [](const Tensor& tensor) { return std::string_view(tensor.name); });
  return std::shared_ptr<const File>(new File(std::move(state)));
}

const std::string& File::name() const { return state_->source->name(); }
uint32_t File::version() const { return state_->header.version; }
uint64_t File::size_bytes() const { return state_->source->size(); }
uint64_t File::data_offset() const { return state_->header.data_offset; }
uint64_t File::alignment() const { return state_->header.alignment; }
const std::vector<std::pair<std::string, Value>>& File::metadata() const {
  return state_->header.metadata;
}
const std::vector<Tensor>& File::tensors() const { return state_->header.tensors; }

const Tensor* File::FindTensor(std::string_view name) const {
  const auto found = state_->tensors.find(name);
  return found == state_->tensors.end() ? nullptr : &state_->header.tensors[found->second];
}

const Value* File::FindKey(std::string_view key) const {
  const auto found = state_->keys.find(key);
  return found == state_->keys.end() ? nullptr : &state_->header.metadata[found->second].second;
}

Result<std::string> File::GetString(std::string_view key) const {
  ASSAY_ASSIGN_OR_RETURN(const Value* value, NeedKey(*this, key));
  if (const auto* text = std::get_if<std::string>(value)) return *text;
  return WrongType(*this, key, *value, "a string");
}

Result<uint64_t> File::GetUint(std::string_view key) const {
  ASSAY_ASSIGN_OR_RETURN(const Value* value, NeedKey(*this, key));
  if (const auto* number = std::get_if<uint64_t>(value)) return *number;
  const auto* number = std::get_if<int64_t>(value);
  if (number == nullptr) return WrongType(*this, key, *value, "an unsigned integer");
  if (*number < 0) {
    return Fail(ErrorCode::kFormat, name(),
                fmt::format("Metadata key {} of \"{}\" is {}; it must not be below 0.", Quoted(key),
                            name(), *number));
  }
  return static_cast<uint64_t>(*number);
}

Result<double> File::GetDouble(std::string_view key) const {
  ASSAY_ASSIGN_OR_RETURN(const Value* value, NeedKey(*this, key));
  if (const auto* number = std::get_if<double>(value)) return *number;
  return WrongType(*this, key, *value, "a floating-point number");
}

Result<bool> File::GetBool(std::string_view key) const {
  ASSAY_ASSIGN_OR_RETURN(const Value* value, NeedKey(*this, key));
  if (const auto* truth = std::get_if<bool>(value)) return *truth;
  return WrongType(*this, key, *value, "a truth value");
}

std::span<const std::byte> File::TensorBytes(const Tensor& tensor) const {
  return state_->source->bytes().subspan(static_cast<size_t>(tensor.offset),
                                         static_cast<size_t>(tensor.size_bytes));
}

Status File::ReadTensor(const Tensor& tensor, std::span<std::byte> out, uint64_t offset) const {
  if (offset > tensor.size_bytes || out.size() > tensor.size_bytes - offset) {
    return Fail(ErrorCode::kInvalidArgument, tensor.name,
                fmt::format("Tensor {} has {} bytes; {} from byte {} on are not in it.",
                            Quoted(tensor.name), tensor.size_bytes, out.size(), offset));
  }
  ASSAY_TRY_WHILE(state_->source->ReadAt(tensor.offset + offset, out),
                  fmt::format("reading tensor {}", Quoted(tensor.name)));
  return {};
}

}  // namespace assay::gguf
