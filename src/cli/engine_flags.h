// The flags that run, trace and bench share, and what they stand for: a model file, a device, a
// decoder.
#ifndef ASSAY_CLI_ENGINE_FLAGS_H_
#define ASSAY_CLI_ENGINE_FLAGS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "assay/base.h"
#include "assay/gpu.h"
#include "assay/llm.h"

#include "cli/command.h"

namespace assay::cli {

// Values of the flags; the defaults stand when a flag is absent.
struct EngineFlags {
  std::string model;
  bool model_given = false;  // Without it the built-in model is used.
  int64_t threads = 0;
  int64_t loaders = 0;
  int64_t context = 0;
  std::string kv = "f16";
  std::string barriers = "manual";
  std::string graph = "on";
  std::string backend = "cpu";
  std::string device;
  bool device_given = false;
  std::string kernels = "spirv";
  bool kernels_given = false;
  std::string vulkan_disable;
  std::string schedule = "recorded";
  int64_t drop_barrier = 0;
  int64_t commit_every = -1;
  bool mmap = false;
  bool checked = false;
  bool cooperative_matrix = false;

  // -m, --loaders, -c, --kv, --barriers, --graph, --backend and what goes with it,
  // --cooperative-matrix, --mmap and --checked, which write into this object.
  std::vector<Flag> Flags();
  // -t, apart because bench takes a list.
  Flag ThreadsFlag();
  // --schedule, apart because perturb and mutate go through several.
  Flag ScheduleFlag();
  // --drop-barrier, apart because mutate drops each in turn.
  Flag DropBarrierFlag();
  // --commit-every, apart because perturb and mutate count barriers through a pass.
  Flag CommitEveryFlag();

  // False for the device that only takes down what it is asked to do.
  bool computes() const { return backend != "null"; }

  // What no single flag can say; for CheckArguments().
  Status Check() const;

  llm::LoadOptions load_options() const;
  llm::DecoderOptions decoder_options() const;
  gpu::DeviceOptions device_options() const;
};

// The model that -m names, or the built-in one.
Result<std::shared_ptr<const gguf::File>> OpenModel(const EngineFlags& flags);

// The digest of that whole file, and its weights on a device. Both show progress and answer Ctrl-C
// with an error of code kCancelled.
Result<std::string> ModelDigest(Context& context, const EngineFlags& flags);
Result<std::unique_ptr<llm::Model>> LoadModel(Context& context, const EngineFlags& flags,
                                              gpu::Device* device,
                                              std::shared_ptr<const gguf::File> file);

// A decoder of `model` with `options`, as decoder_options() gives them or changed by the command.
// Stopped by the user it fails with kCancelled and `stopped`; where memory is short it says which
// flags ask for less.
Result<std::unique_ptr<llm::Decoder>> MakeDecoder(const EngineFlags& flags, const llm::Model& model,
                                                  const llm::DecoderOptions& options,
                                                  std::string_view stopped);

// The ids that trace and bench feed, the same for every model with that vocabulary
// (docs/engine.md): from x = 1 on, x = x * 6364136223846793005 + 1442695040888963407 modulo 2^64,
// and the id is the remainder of x / 2^33 by the smaller of 256 and the vocabulary.
std::vector<llm::TokenId> FixedIds(size_t count, uint32_t vocabulary);

// Error kInvalidArgument when the list that `flag` gives names a number twice.
Status CheckNamedOnce(std::string_view flag, std::vector<int64_t> numbers);

// Error kInvalidArgument for a value of --device that is only spaces.
Status CheckDeviceName(const std::string& device);

// The backend that --backend names, with `threads` threads (0: one for each core), under
// --schedule.
// Its work stops when the user asks the program to: what is waited for then fails with kCancelled.
// The context must outlive it.
Result<std::unique_ptr<gpu::Backend>> MakeBackend(const Context& context, const EngineFlags& flags,
                                                  int64_t threads);

}  // namespace assay::cli

#endif  // ASSAY_CLI_ENGINE_FLAGS_H_
