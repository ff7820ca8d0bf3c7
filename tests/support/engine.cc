#include "support/engine.h"

#include <gtest/gtest.h>

#include "gpu/backend.h"

namespace assay::testing {
namespace {

// Tests that reach an error here have nothing left to check.
template <typename T>
T Must(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().ToString();
    std::abort();
  }
  return std::move(*result);
}

}  // namespace

std::unique_ptr<gpu::Device> MakeCpuDevice(int threads, bool checked) {
  gpu::BackendOptions options;
  options.threads = threads;
  gpu::DeviceOptions device_options;
  device_options.checked = checked;
  return Must(gpu::Device::Create(Must(gpu::MakeBackend("cpu", options)), device_options));
}

Engine::Engine(std::string gguf_bytes, const EngineOptions& options)
    : bytes_(std::move(gguf_bytes)),
      file_(Must(gguf::File::FromMemory(std::as_bytes(std::span(bytes_)), "test.gguf"))) {
  Load(MakeCpuDevice(options.threads, options.checked), options);
}

Engine::Engine(std::shared_ptr<const gguf::File> file, const EngineOptions& options)
    : file_(std::move(file)) {
  Load(MakeCpuDevice(options.threads, options.checked), options);
}

Engine::Engine(std::string gguf_bytes, std::unique_ptr<gpu::Device> device)
    : bytes_(std::move(gguf_bytes)),
      file_(Must(gguf::File::FromMemory(std::as_bytes(std::span(bytes_)), "test.gguf"))) {
  Load(std::move(device), {});
}

void Engine::Load(std::unique_ptr<gpu::Device> device, const EngineOptions& options) {
  device_ = std::move(device);
  model_ = Must(
      llm::Model::Load(device_.get(), file_, {.loaders = options.loaders, .mmap = options.mmap}));
}

std::unique_ptr<llm::Decoder> Engine::NewDecoder(const llm::DecoderOptions& options) const {
  return Must(llm::Decoder::Create(model_.get(), options));
}

std::vector<float> LogitsOf(llm::Decoder& decoder, std::span<const llm::TokenId> ids, int steps) {
  std::vector<float> all;
  Status status = decoder.Feed(ids);
  for (int step = 0; step <= steps; ++step) {
    if (!status) {
      ADD_FAILURE() << status.error().ToString();
      return all;
    }
    const std::span<const float> logits = Must(decoder.Logits());
    all.insert(all.end(), logits.begin(), logits.end());
    if (step == steps) break;
    const llm::TokenId next = Must(decoder.Greedy());
    status = decoder.Feed({&next, 1});
  }
  return all;
}

std::vector<llm::TokenId> SomeIds(size_t count, uint32_t vocabulary) {
  std::vector<llm::TokenId> ids(count);
  for (size_t i = 0; i < count; ++i) {
    ids[i] = static_cast<llm::TokenId>((i * 37 + 11) % vocabulary);
  }
  return ids;
}

}  // namespace assay::testing
