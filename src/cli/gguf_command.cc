#include "cli/gguf_command.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "assay/llm.h"

#include "base/counted.h"
#include "base/text.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

// What is shown of a long array or string unless all of it is asked for.
constexpr size_t kShownItems = 8;
constexpr size_t kShownBytes = 72;

template <typename... Ts>
struct Overload : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overload(Ts...) -> Overload<Ts...>;

using PlainValue = std::variant<uint64_t, int64_t, double, bool, std::string, gguf::Array>;
const PlainValue& Plain(const gguf::Value& value) { return value; }

// `text` in quotes, with the ends of lines as \n: chat templates are full of them.
std::string QuotedLines(std::string_view text) {
  std::string shown = "\"";
  for (;;) {
    const size_t line_end = text.find('\n');
    AppendEscaped(&shown, text.substr(0, line_end), "\"\\");
    if (line_end == std::string_view::npos) return shown + "\"";
    shown += "\\n";
    text.remove_prefix(line_end + 1);
  }
}

// The shortest decimal that reads back as the same number (most files hold 32-bit ones), never one
// that looks like an integer.
std::string ShownNumber(double number) {
  const auto narrow = static_cast<float>(number);
  std::string shown =
      static_cast<double>(narrow) == number ? fmt::format("{}", narrow) : fmt::format("{}", number);
  if (std::isfinite(number) && shown.find_first_of(".e") == std::string::npos) shown += ".0";
  return shown;
}

std::string ShownValue(const gguf::Value& value, bool whole);

std::string ShownString(const std::string& text, bool whole) {
  const std::string_view shown = whole ? text : Beginning(text, kShownBytes);
  const std::string quoted = QuotedLines(shown);
  if (shown.size() == text.size()) return quoted;
  return fmt::format("{}... ({})", quoted, Counted(text.size(), "byte"));
}

std::string ShownArray(const gguf::Array& items, bool whole) {
  const size_t count = whole ? items.size() : std::min(items.size(), kShownItems);
  std::vector<std::string> shown;
  for (size_t i = 0; i < count; ++i) shown.push_back(ShownValue(items[i], whole));
  if (count == items.size()) return fmt::format("[{}]", fmt::join(shown, ", "));
  return fmt::format("[{}, ...] ({})", fmt::join(shown, ", "), Counted(items.size(), "item"));
}

std::string ShownValue(const gguf::Value& value, bool whole) {
  return std::visit(Overload{[](uint64_t number) { return fmt::format("{}", number); },
                             [](int64_t number) { return fmt::format("{}", number); },
                             [](double number) { return ShownNumber(number); },
                             [](bool truth) { return std::string(truth ? "true" : "false"); },
                             [&](const std::string& text) { return ShownString(text, whole); },
                             [&](const gguf::Array& items) { return ShownArray(items, whole); }},
                    Plain(value));
}

// Arrays and strings that are cut become objects, so that no reader takes a part for the whole.
Json JsonValue(const gguf::Value& value, bool whole) {
  return std::visit(
      Overload{[](uint64_t number) { return Json(number); },
               [](int64_t number) { return Json(number); },
               [](double number) {
                 // The decimal of the 32-bit number, not the many digits of its double.
                 return std::isfinite(number) ? Json::parse(ShownNumber(number)) : Json();
               },
               [](bool truth) { return Json(truth); },
               [&](const std::string& text) {
                 if (whole || text.size() <= kShownBytes) return Json(text);
                 return Json{{"begins", Beginning(text, kShownBytes)}, {"bytes", text.size()}};
               },
               [&](const gguf::Array& items) {
                 Json shown = Json::array();
                 const size_t count = whole ? items.size() : std::min(items.size(), kShownItems);
                 for (size_t i = 0; i < count; ++i) shown.push_back(JsonValue(items[i], whole));
                 if (count == items.size()) return shown;
                 return Json{{"begins", shown}, {"items", items.size()}};
               }},
      Plain(value));
}

// Tensors of one type.
struct TypeTotal {
  size_t tensors = 0;
  uint64_t values = 0;
  uint64_t bytes = 0;
};

uint64_t CountValues(const gguf::Tensor& tensor) {
  uint64_t values = 1;
  for (const uint64_t dim : tensor.dims) values *= dim;
  return values;
}

class GgufCommand final : public Command {
 public:
  CommandSpec Describe() override {
    return {
        .name = "gguf",
        .summary = "Shows what a GGUF model file holds.",
        .description =
            "Lists the metadata and the tensors of FILE, in the order of the file. The whole "
            "header is checked first: counts, lengths, names, sizes, and that each tensor lies "
            "inside the file and overlaps no other. Dimensions are given with the contiguous one "
            "first, offsets from the start of the file.",
        .positionals = {{.name = "FILE", .value = TextValue{&path_}, .help = "A GGUF file."}},
        .flags = {{.names = "--metadata",
                   .value = SwitchValue{&only_metadata_},
                   .help = "Shows the metadata alone."},
                  {.names = "--tensors",
                   .value = SwitchValue{&only_tensors_},
                   .help = "Shows the tensors alone."},
                  {.names = "--full",
                   .value = SwitchValue{&full_},
                   .help = fmt::format("Shows arrays of more than {} items and strings of more "
                                       "than {} bytes whole.",
                                       kShownItems, kShownBytes)},
                  {.names = "--json",
                   .value = SwitchValue{&json_},
                   .help = "Prints one JSON object. An array or string that is cut stands there "
                           "as an object with \"begins\" and its \"items\" or \"bytes\"."}},
        .examples = {{"assay gguf model.gguf", "Everything, long arrays cut."},
                     {"assay gguf model.gguf --tensors | grep ffn_down",
                      "The tensors of one kind."}},
        .exit_meanings = {{0, "The file is whole."}, {2, "It is no GGUF file, or a broken one."}},
    };
  }

  Result<int> Run(Context& context) override {
    ASSAY_ASSIGN_OR_RETURN(const auto file, gguf::File::Open(path_));
    if (json_) {
      PrintJson(context, *file);
    } else {
      PrintText(context, *file);
    }
    return kExitOk;
  }

 private:
  bool shows_metadata() const { return only_metadata_ || !only_tensors_; }
  bool shows_tensors() const { return only_tensors_ || !only_metadata_; }

  void PrintText(Context& context, const gguf::File& file) const {
    context.Print(fmt::format("{}: GGUF version {}, {} bytes, data from byte {} on, alignment {}\n",
                              Printable(file.name()), file.version(), file.size_bytes(),
                              file.data_offset(), file.alignment()));
    if (shows_metadata()) PrintMetadata(context, file);
    if (shows_tensors()) PrintTensors(context, file);
  }

  void PrintMetadata(Context& context, const gguf::File& file) const {
    constexpr size_t kWidestKey = 44;
    context.Print(fmt::format("\n{}\n", Counted(file.metadata().size(), "metadata key")));
    size_t width = 0;
    for (const auto& [key, value] : file.metadata()) {
      if (key.size() <= kWidestKey) width = std::max(width, key.size());
    }
    for (const auto& [key, value] : file.metadata()) {
      context.Print(fmt::format("  {:<{}}  {}\n", Printable(key), width, ShownValue(value, full_)));
      if (context.print_failed()) return;
    }
  }

  static void PrintTensors(Context& context, const gguf::File& file) {
    std::map<std::string_view, TypeTotal> types;
    TypeTotal all;
    for (const gguf::Tensor& tensor : file.tensors()) {
      for (TypeTotal* total : {&types[gguf::TensorTypeName(tensor.type)], &all}) {
        ++total->tensors;
        total->values += CountValues(tensor);
        total->bytes += tensor.size_bytes;
      }
    }
    context.Print(fmt::format("\n{}, {}, {}\n", Counted(all.tensors, "tensor"),
                              Counted(all.values, "value"), Counted(all.bytes, "byte")));
    for (const auto& [type, total] : types) {
      context.Print(fmt::format("  {:<5} {}, {}, {}\n", type, Counted(total.tensors, "tensor"),
                                Counted(total.values, "value"), Counted(total.bytes, "byte")));
    }
    if (file.tensors().empty()) return;
    context.Print(fmt::format("\n  {:<5}  {:>12}  {:>12}  {:<20}  {}\n", "type", "offset", "bytes",
                              "shape", "name"));
    for (const gguf::Tensor& tensor : file.tensors()) {
      context.Print(fmt::format("  {:<5}  {:>12}  {:>12}  {:<20}  {}\n",
                                gguf::TensorTypeName(tensor.type), tensor.offset, tensor.size_bytes,
                                fmt::format("{}", fmt::join(tensor.dims, " x ")),
                                Printable(tensor.name)));
      if (context.print_failed()) return;
    }
  }

  void PrintJson(Context& context, const gguf::File& file) const {
    Json root = {{"file", file.name()},
                 {"version", file.version()},
                 {"bytes", file.size_bytes()},
                 {"data_offset", file.data_offset()},
                 {"alignment", file.alignment()}};
    if (shows_metadata()) {
      Json& metadata = root["metadata"] = Json::object();
      for (const auto& [key, value] : file.metadata()) metadata[key] = JsonValue(value, full_);
    }
    if (shows_tensors()) {
      Json& tensors = root["tensors"] = Json::array();
      for (const gguf::Tensor& tensor : file.tensors()) {
        tensors.push_back({{"name", tensor.name},
                           {"type", gguf::TensorTypeName(tensor.type)},
                           {"dims", tensor.dims},
                           {"offset", tensor.offset},
                           {"bytes", tensor.size_bytes}});
      }
    }
    // Text that is not UTF-8 cannot stand in JSON; its bytes become U+FFFD.
    context.Print(root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  std::string path_;
  bool only_metadata_ = false;
  bool only_tensors_ = false;
  bool full_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeGgufCommand() { return std::make_unique<GgufCommand>(); }

}  // namespace assay::cli
