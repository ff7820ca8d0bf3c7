// Takes values out of a TOML file and says what is wrong with line and column.
#ifndef ASSAY_PROVE_TOML_READER_H_
#define ASSAY_PROVE_TOML_READER_H_

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Some of the parser's assertions are about the file, such as one of "[(": what stands behind them
// refuses it, and so they must not end the program.
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

#include "assay/base.h"

namespace assay::prove {

// The first fault sticks; after it, what is read means nothing. One thread.
//
//   TomlReader reader(path);
//   const std::optional<toml::table> document = reader.Parse(text);
//   if (document) reader.Text(*document, "name", &name);
//   ASSAY_TRY(reader.status());
class TomlReader final {
 public:
  // `path` is for messages.
  explicit TomlReader(std::string path) : path_(std::move(path)) {}

  // nullopt: `text` is no TOML, which status() says.
  std::optional<toml::table> Parse(std::string_view text);

  // The table `name` of `parent`; null when it is not there.
  const toml::table* Table(const toml::table& parent, std::string_view name);
  // Every key must be one of `known`; `where` is how a message names the table.
  void CheckKeys(const toml::table& table, std::string_view where,
                 std::span<const std::string> known);
  // The readers of values leave *out as it is when there is no such key.
  void Text(const toml::table& table, std::string_view name, std::string* out);
  void Number(const toml::table& table, std::string_view name, int64_t min, int64_t max,
              int64_t* out);
  // Rising, each from 0 to `max`.
  void Numbers(const toml::table& table, std::string_view name, int64_t max,
               std::vector<int64_t>* out);
  // `check` returns what is wrong with an item, as a sentence, or nothing.
  void Texts(const toml::table& table, std::string_view name,
             const std::function<std::string(const std::string&)>& check,
             std::vector<std::string>* out);
  // Every entry of `table` but `skip`, a name in braces of a command and its value. Names of
  // lower-case letters that stand for nothing yet; texts and whole numbers.
  void Variables(const toml::table& table, std::string_view skip,
                 std::map<std::string, std::string>* out);

  void Refuse(const toml::node& node, std::string_view message);
  void RefuseAt(const toml::source_position& at, std::string_view message);
  // About the file as a whole.
  void RefuseFile(std::string_view message);
  Status status() const;

 private:
  std::vector<const toml::node*> Items(const toml::node& node, std::string_view name,
                                       std::string_view of);
  void CheckNumber(const toml::node& node, std::string_view name, int64_t min, int64_t max,
                   int64_t* out);

  std::string path_;
  std::optional<Error> fault_;
};

// A sentence about `word`, which is to be one of `known` ("values of \"require\""); empty when it
// is one.
std::string CheckWord(const std::string& word, std::string_view name,
                      std::span<const std::string> known);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_TOML_READER_H_
