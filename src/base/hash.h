// The program's one digest: XXH3, 128 bits, as 32 lower-case hex digits. Not cryptographic: it
// tells accidents from sameness, not forgers from authors.
#ifndef ASSAY_BASE_HASH_H_
#define ASSAY_BASE_HASH_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace assay {

// Takes bytes in pieces; the digest does not depend on where they were cut. A copy goes on from the
// same bytes.
class Hasher final {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher& other);
  Hasher& operator=(const Hasher&) = delete;

  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view text);
  // Of everything so far; may be followed by more.
  std::string HexDigest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string HexDigest(std::span<const std::byte> bytes);
std::string HexDigest(std::string_view text);

}  // namespace assay

#endif  // ASSAY_BASE_HASH_H_
