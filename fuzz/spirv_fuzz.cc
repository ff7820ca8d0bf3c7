// Any bytes as the words of a SPIR-V module: it is refused with a message, or what is said of it
// holds together, and a debug instruction more changes nothing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "gpu/spirv/module.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using assay::gpu::spirv::ReadModule;
  constexpr size_t kHeaderWords = 5;
  constexpr uint32_t kNoLine = 1U << 16 | 317;
  std::vector<uint32_t> words(size / sizeof(uint32_t));
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(uint32_t));
  const std::vector<uint32_t> specialization = {64, 3, 0xFFFFFFFF};
  const auto facts = ReadModule(words, specialization);
  Require(!assay::gpu::spirv::DigestOf(words, specialization).empty());
  if (!facts) {
    Require(!facts.error().message().empty());
    return 0;
  }
  Require(facts->digest.size() == 32 && facts->code_bytes <= words.size() * sizeof(uint32_t));
  uint64_t instructions = 0;
  for (const auto& [name, count] : facts->instructions) {
    Require(!name.empty() && count > 0);
    instructions += count;
  }
  Require(instructions <= words.size());
  words.insert(words.begin() + kHeaderWords, kNoLine);
  const auto again = ReadModule(words, specialization);
  Require(again && again->digest == facts->digest && again->workgroup == facts->workgroup &&
          again->shared_bytes == facts->shared_bytes && again->instructions == facts->instructions);
  return 0;
}
