// Engine: a model from bytes on a cpu device, as tests of the engine want it.
#ifndef ASSAY_TESTS_SUPPORT_ENGINE_H_
#define ASSAY_TESTS_SUPPORT_ENGINE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "assay/gpu.h"
#include "assay/llm.h"

namespace assay::testing {

struct EngineOptions {
  int threads = 2;
  int loaders = 2;
  bool mmap = false;
  bool checked = false;
};

// A cpu device; fails the test and aborts when it cannot be made.
std::unique_ptr<gpu::Device> MakeCpuDevice(int threads, bool checked = false);

// Owns a file's bytes, a device and the loaded model.
class Engine final {
 public:
  explicit Engine(std::string gguf_bytes, const EngineOptions& options = {});
  // Borrows a file.
  explicit Engine(std::shared_ptr<const gguf::File> file, const EngineOptions& options = {});
  // On a device that the test has made.
  Engine(std::string gguf_bytes, std::unique_ptr<gpu::Device> device);

  const gguf::File& file() const { return *file_; }
  gpu::Device& device() { return *device_; }
  const llm::Model& model() const { return *model_; }
  std::unique_ptr<llm::Decoder> NewDecoder(const llm::DecoderOptions& options = {}) const;

 private:
  void Load(std::unique_ptr<gpu::Device> device, const EngineOptions& options);

  std::string bytes_;
  std::shared_ptr<const gguf::File> file_;
  std::unique_ptr<gpu::Device> device_;
  std::unique_ptr<llm::Model> model_;
};

// The logits after `ids`, fed at once, then of each of `steps` greedy steps, one after another.
std::vector<float> LogitsOf(llm::Decoder& decoder, std::span<const llm::TokenId> ids, int steps);

// Ids that differ from each other, all below `vocabulary`.
std::vector<llm::TokenId> SomeIds(size_t count, uint32_t vocabulary);

}  // namespace assay::testing

#endif  // ASSAY_TESTS_SUPPORT_ENGINE_H_
