// Output: buffered text to a file descriptor or a string. The first failure sticks.
#ifndef ASSAY_CLI_OUTPUT_H_
#define ASSAY_CLI_OUTPUT_H_

#include <string>
#include <string_view>

namespace assay::cli {

// One thread at a time.
class Output {
 public:
  virtual ~Output() = default;
  void Write(std::string_view text);
  void Flush();
  // True when what was written last did not end its line.
  bool mid_line() const { return mid_line_; }
  // The errno of the first failed write; 0 while there is none. Later writes do nothing.
  int error() const { return error_; }

 protected:
  // Writes all of it. Returns 0 or an errno.
  virtual int WriteAll(std::string_view text) = 0;

 private:
  std::string pending_;
  int error_ = 0;
  bool mid_line_ = false;
};

// The descriptor is borrowed. What was not flushed is lost.
class FdOutput final : public Output {
 public:
  explicit FdOutput(int fd) : fd_(fd) {}

 protected:
  int WriteAll(std::string_view text) override;

 private:
  int fd_;
};

class StringOutput final : public Output {
 public:
  const std::string& text() const { return text_; }

 protected:
  int WriteAll(std::string_view text) override {
    text_ += text;
    return 0;
  }

 private:
  std::string text_;
};

}  // namespace assay::cli

#endif  // ASSAY_CLI_OUTPUT_H_
