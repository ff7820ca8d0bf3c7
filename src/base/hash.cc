#include "base/hash.h"

#include <fmt/format.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // The same functions with the widest vectors of the processor.
#else
#include <xxhash.h>
#endif

namespace assay {

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

namespace {
std::string Hex(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}
}  // namespace

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh); }
Hasher::~Hasher() = default;
Hasher::Hasher(const Hasher& other) : state_(std::make_unique<State>()) {
  XXH3_copyState(state_->xxh, other.state_->xxh);
}

void Hasher::Update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}
void Hasher::Update(std::string_view text) { Update(std::as_bytes(std::span(text))); }
std::string Hasher::HexDigest() const { return Hex(XXH3_128bits_digest(state_->xxh)); }

std::string HexDigest(std::span<const std::byte> bytes) {
  return Hex(XXH3_128bits(bytes.data(), bytes.size()));
}
std::string HexDigest(std::string_view text) { return HexDigest(std::as_bytes(std::span(text))); }

}  // namespace assay
