#include "llm/tokenizer/vocabulary.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "llm/gguf/quoted.h"
#include "llm/tokenizer/byte_names.h"

namespace assay::llm {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";

// Ids that the file may give; each must lie in the vocabulary. Generation ends at some of them.
struct IdKey {
  std::string_view key;
  bool ends_text;
};
constexpr IdKey kIdKeys[] = {
    {"tokenizer.ggml.bos_token_id", false},     {"tokenizer.ggml.eos_token_id", true},
    {"tokenizer.ggml.eot_token_id", true},      {"tokenizer.ggml.eom_token_id", true},
    {"tokenizer.ggml.unknown_token_id", false}, {"tokenizer.ggml.padding_token_id", false},
    {"tokenizer.ggml.fim_pad_token_id", true},  {"tokenizer.ggml.fim_rep_token_id", true},
    {"tokenizer.ggml.fim_sep_token_id", true},
};

// Tokens that end a text in the model families that use this pre-tokenizer, whatever the keys say.
// They are control tokens even where the file marks them as text.
constexpr std::string_view kEndNames[] = {
    "<|endoftext|>",   "<|im_end|>",  "<|eot_id|>",    "<|eom_id|>",
    "<|end_of_text|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>",
};

class VocabularyReader final {
 public:
  explicit VocabularyReader(const gguf::File* file) : file_(*file) {}

  Result<Vocabulary> Read() {
    ASSAY_TRY(CheckModel());
    ASSAY_TRY(ReadTokens());
    ASSAY_TRY(ReadKinds());
    ASSAY_TRY(CheckScores());
    ASSAY_TRY(FindByteTokens());
    ASSAY_TRY(ReadMerges());
    ASSAY_TRY(ReadIds());
    ASSAY_TRY(DecodeTokens());
    return std::move(vocabulary_);
  }

 private:
  tl::unexpected<Error> Broken(std::string_view sentence) const {
    return Fail(ErrorCode::kFormat, file_.name(),
                fmt::format("The vocabulary of \"{}\" is broken: {}", file_.name(), sentence));
  }

  Status CheckModel() const {
    ASSAY_ASSIGN_OR_RETURN(const std::string model, file_.GetString("tokenizer.ggml.model"));
    if (model != "gpt2") {
      return Fail(ErrorCode::kUnsupported, file_.name(),
                  fmt::format("\"{}\" has a tokenizer of model {} (tokenizer.ggml.model); only "
                              "\"gpt2\", byte-level BPE, is known.",
                              file_.name(), gguf::Quoted(model)));
    }
    ASSAY_ASSIGN_OR_RETURN(const std::string pre, file_.GetString("tokenizer.ggml.pre"));
    if (pre != "qwen2") {
      return Fail(ErrorCode::kUnsupported, file_.name(),
                  fmt::format("\"{}\" has pre-tokenizer {} (tokenizer.ggml.pre); only \"qwen2\" is "
                              "known.",
                              file_.name(), gguf::Quoted(pre)));
    }
    return {};
  }

  // Null where the key is missing.
  Result<const gguf::Array*> FindArray(std::string_view key) const {
    const gguf::Value* value = file_.FindKey(key);
    if (value == nullptr) return nullptr;
    const auto* array = std::get_if<gguf::Array>(value);
    if (array == nullptr) return Broken(fmt::format("{} is no array.", key));
    return array;
  }
  Result<const gguf::Array*> NeedArray(std::string_view key) const {
    ASSAY_ASSIGN_OR_RETURN(const gguf::Array* array, FindArray(key));
    if (array == nullptr) {
      return Fail(ErrorCode::kNotFound, std::string(key),
                  fmt::format("\"{}\" has no metadata key \"{}\".", file_.name(), key));
    }
    return array;
  }

  Status ReadTokens() {
    ASSAY_ASSIGN_OR_RETURN(const gguf::Array* texts, NeedArray(kTokens));
    if (texts->empty()) return Broken(fmt::format("{} is empty.", kTokens));
    vocabulary_.tokens.resize(texts->size());
    ids_.reserve(texts->size());
    for (size_t id = 0; id < texts->size(); ++id) {
      const auto* text = std::get_if<std::string>(&(*texts)[id]);
      if (text == nullptr) return Broken(fmt::format("{} holds no strings.", kTokens));
      if (text->empty()) return Broken(fmt::format("token {} of {} is empty.", id, kTokens));
      vocabulary_.tokens[id].text = *text;
      const auto [known, fresh] = ids_.emplace(*text, static_cast<TokenId>(id));
      if (!fresh) {
        return Broken(fmt::format("tokens {} and {} of {} are both {}.", known->second, id, kTokens,
                                  gguf::Quoted(*text)));
      }
    }
    return {};
  }

  Status CheckLength(std::string_view key, size_t length) const {
    if (length == vocabulary_.tokens.size()) return {};
    return Broken(
        fmt::format("{} has {} items for {} tokens.", key, length, vocabulary_.tokens.size()));
  }

  Status ReadKinds() {
    ASSAY_ASSIGN_OR_RETURN(const gguf::Array* kinds, FindArray(kTypes));
    if (kinds != nullptr) {
      ASSAY_TRY(CheckLength(kTypes, kinds->size()));
      for (size_t id = 0; id < kinds->size(); ++id) {
        ASSAY_ASSIGN_OR_RETURN(vocabulary_.tokens[id].kind, KindOf((*kinds)[id], id));
      }
    }
    for (const std::string_view name : kEndNames) {
      const auto found = ids_.find(name);
      if (found == ids_.end()) continue;
      vocabulary_.end_of_text.insert(found->second);
      TokenKind& kind = vocabulary_.tokens[static_cast<size_t>(found->second)].kind;
      if (!IsSpecial(kind)) kind = TokenKind::kControl;
    }
    return {};
  }

  Result<TokenKind> KindOf(const gguf::Value& value, size_t id) const {
    uint64_t number = 0;
    if (const auto* with_sign = std::get_if<int64_t>(&value)) {
      number = static_cast<uint64_t>(*with_sign);
    } else if (const auto* without_sign = std::get_if<uint64_t>(&value)) {
      number = *without_sign;
    } else {
      return Broken(fmt::format("{} holds no integers.", kTypes));
    }
    if (number < 1 || number > 6) {
      return Broken(fmt::format("token {} ({}) has type {} in {}; the types are 1 to 6.", id,
                                gguf::Quoted(vocabulary_.tokens[id].text),
                                static_cast<int64_t>(number), kTypes));
    }
    return static_cast<TokenKind>(number);
  }

  // Byte-level BPE ranks its merges by their order; scores are not used, but a wrong count of them
  // tells that the lists do not belong together.
  Status CheckScores() const {
    ASSAY_ASSIGN_OR_RETURN(const gguf::Array* scores, FindArray(kScores));
    if (scores == nullptr) return {};
    return CheckLength(kScores, scores->size());
  }

  Status FindByteTokens() {
    for (size_t byte = 0; byte < vocabulary_.byte_tokens.size(); ++byte) {
      const auto found = ids_.find(ByteName(static_cast<uint8_t>(byte)));
      if (found == ids_.end()) {
        return Broken(
            fmt::format("{} has no token for byte 0x{:02x}, so not every text can be "
                        "written.",
                        kTokens, byte));
      }
      vocabulary_.byte_tokens[byte] = found->second;
    }
    return {};
  }

  Status ReadMerges() {
    ASSAY_ASSIGN_OR_RETURN(const gguf::Array* merges, NeedArray(kMerges));
    vocabulary_.merges = MergeTable(merges->size());
    for (size_t rank = 0; rank < merges->size(); ++rank) {
      const auto* text = std::get_if<std::string>(&(*merges)[rank]);
      if (text == nullptr) return Broken(fmt::format("{} holds no strings.", kMerges));
      ASSAY_TRY(AddMerge(*text, rank));
    }
    return {};
  }

  Status AddMerge(const std::string& text, size_t rank) {
    // A token may begin with a space, so the first byte cannot be the one between the two.
    const size_t space = text.find(' ', 1);
    if (space == std::string::npos || space + 1 == text.size()) {
      return Broken(fmt::format("merge {} of {} is {}, not two tokens with a space between.", rank,
                                kMerges, gguf::Quoted(text)));
    }
    const std::string_view left = std::string_view(text).substr(0, space);
    const std::string_view right = std::string_view(text).substr(space + 1);
    ASSAY_ASSIGN_OR_RETURN(const TokenId left_id, TokenOfMerge(left, text, rank));
    ASSAY_ASSIGN_OR_RETURN(const TokenId right_id, TokenOfMerge(right, text, rank));
    ASSAY_ASSIGN_OR_RETURN(const TokenId merged,
                           TokenOfMerge(fmt::format("{}{}", left, right), text, rank));
    vocabulary_.merges.Add(left_id, right_id, {static_cast<uint32_t>(rank), merged});
    return {};
  }

  Result<TokenId> TokenOfMerge(std::string_view token, std::string_view merge, size_t rank) const {
    const auto found = ids_.find(token);
    if (found == ids_.end()) {
      return Broken(fmt::format("merge {} of {} ({}) needs token {}, which {} lacks.", rank,
                                kMerges, gguf::Quoted(merge), gguf::Quoted(token), kTokens));
    }
    return found->second;
  }

  Status ReadIds() {
    for (const IdKey& id_key : kIdKeys) {
      if (file_.FindKey(id_key.key) == nullptr) continue;
      ASSAY_ASSIGN_OR_RETURN(const uint64_t id, file_.GetUint(id_key.key));
      if (id >= vocabulary_.tokens.size()) {
        return Broken(fmt::format("{} is {}, outside the vocabulary of {} tokens.", id_key.key, id,
                                  vocabulary_.tokens.size()));
      }
      if (id_key.ends_text) vocabulary_.end_of_text.insert(static_cast<TokenId>(id));
    }
    constexpr std::string_view kAddBegin = "tokenizer.ggml.add_bos_token";
    if (file_.FindKey(kAddBegin) == nullptr) return {};
    ASSAY_ASSIGN_OR_RETURN(const bool add_begin, file_.GetBool(kAddBegin));
    if (!add_begin) return {};
    if (file_.FindKey(kIdKeys[0].key) == nullptr) {
      return Broken(fmt::format("{} is true, but there is no {}.", kAddBegin, kIdKeys[0].key));
    }
    ASSAY_ASSIGN_OR_RETURN(const uint64_t begin, file_.GetUint(kIdKeys[0].key));
    vocabulary_.begin = static_cast<TokenId>(begin);
    return {};
  }

  Status DecodeTokens() {
    for (size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
      Token& token = vocabulary_.tokens[id];
      switch (token.kind) {
        case TokenKind::kNormal:
          token.bytes = DecodeByteNames(token.text);
          break;
        case TokenKind::kUnknown:
        case TokenKind::kControl:
        case TokenKind::kUserDefined:
          token.bytes = token.text;
          break;
        case TokenKind::kUnused:
          break;
        case TokenKind::kByte: {
          ASSAY_ASSIGN_OR_RETURN(const char byte, ByteOf(token.text, id));
          token.bytes = std::string(1, byte);
          break;
        }
      }
    }
    return {};
  }

  // "<0x0A>" is byte 10.
  Result<char> ByteOf(std::string_view text, size_t id) const {
    const auto digit = [&](size_t at) {
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      return text.size() == 6 ? kDigits.find(text[at]) : std::string_view::npos;
    };
    const size_t high = digit(3);
    const size_t low = digit(4);
    if (high == std::string_view::npos || low == std::string_view::npos ||
        !text.starts_with("<0x") || !text.ends_with(">")) {
      return Broken(fmt::format("token {} is of the byte type, but {} has not the form \"<0xHH>\".",
                                id, gguf::Quoted(text)));
    }
    return static_cast<char>(high * 16 + low);
  }

  // Looks up views of names without making strings of them.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  const gguf::File& file_;
  Vocabulary vocabulary_;
  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_;
};

}  // namespace

Result<Vocabulary> ReadVocabulary(const gguf::File& file) { return VocabularyReader(&file).Read(); }

}  // namespace assay::llm
