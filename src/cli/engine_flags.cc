#include "cli/engine_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "assay/gpu_devices.h"

#include "base/file.h"
#include "base/hash.h"
#include "cli/embedded_model.h"
#include "gpu/backend.h"

namespace assay::cli {
namespace {

constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxContext = 1 << 24;
constexpr uint32_t kCooperativeChunk = 512;

uint64_t ToMib(uint64_t bytes) { return bytes >> 20; }

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (;;) {
    const size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

std::vector<Flag> EngineFlags::Flags() {
  const std::string group = "model and device";
  return {
      {.names = "-m,--model",
       .value = TextValue{&model},
       .placeholder = "FILE",
       .help = "The model, a GGUF file of the architecture qwen3 or qwen3moe. Without it the "
               "built-in one is used, which recites old tales and knows nothing else.",
       .given = &model_given,
       .show_default = false,
       .group = group},
      {.names = "--loaders",
       .value = IntegerValue{&loaders, 0, kMaxThreads},
       .placeholder = "N",
       .help = "Threads that read weights; 0 is one for each core.",
       .group = group},
      {.names = "-c,--ctx",
       .value = IntegerValue{&context, 0, kMaxContext},
       .placeholder = "N",
       .help = "Positions that the cache holds; 0 is the model's own context.",
       .group = group},
      {.names = "--kv",
       .value = ChoiceValue{&kv, {"f32", "f16"}},
       .placeholder = "TYPE",
       .help = "How keys and values are stored.",
       .group = group},
      {.names = "--barriers",
       .value = ChoiceValue{&barriers, {"manual", "automatic", "serial"}},
       .placeholder = "MODE",
       .help = "Who places barriers: the model's code, the encoder where data conflict, or one "
               "after every dispatch. The results are the same bits.",
       .group = group},
      {.names = "--graph",
       .value = ChoiceValue{&graph, {"on", "off"}},
       .placeholder = "on|off",
       .help = "Fuses and reorders the dispatches of each pass, by a plan that is made once for "
               "each number of tokens. The results are the same bits.",
       .group = group},
      {.names = "--backend",
       .value = ChoiceValue{&backend, gpu::BackendNames()},
       .placeholder = "NAME",
       .help = "The device to run on; null computes nothing and only shows what encoding does and "
               "costs.",
       .group = group},
      {.names = "--device",
       .value = TextValue{&device},
       .placeholder = "NAME|N",
       .help = "Of the backend vulkan: a number or line that assay devices shows, or a part of a "
               "name. Without it a GPU where there is one.",
       .given = &device_given,
       .show_default = false,
       .group = group},
      {.names = "--kernels",
       .value = ChoiceValue{&kernels, {"spirv", "source"}},
       .placeholder = "FORM",
       .help = "Of the backend vulkan: the SPIR-V that was compiled with the program, or its GLSL, "
               "compiled at first use. The results are the same bits.",
       .given = &kernels_given,
       .group = group},
      {.names = "--vulkan-disable",
       .value = TextValue{&vulkan_disable},
       .placeholder = "PATH,...",
       .help = "Optional paths that the backend vulkan does not take: of the names that assay "
               "devices shows as optional; one that the device has not changes nothing. A kernel "
               "that needs one of them is refused.",
       .show_default = false,
       .group = group},
      {.names = "--cooperative-matrix",
       .value = SwitchValue{&cooperative_matrix},
       .help = "Reads prompts by the matrix units of a GPU, 512 tokens at a time: faster, but in "
               "f16 and with bits that depend on how a prompt is cut. Refused on a device without "
               "that path.",
       .group = group},
      {.names = "--mmap",
       .value = SwitchValue{&mmap},
       .help =
           "Uses the mapped file as weights instead of reading it into memory of the program's "
           "own: starts sooner, may decode slower. Without effect on a device that cannot reach "
           "the host's memory or wants weights in another layout.",
       .group = group},
      {.names = "--checked",
       .value = SwitchValue{&checked},
       .help = "Verifies of every dispatch that it touches only the bytes that it declares, and "
               "fails at the first that does not. Slow; the results are the same bits.",
       .group = group},
  };
}

Flag EngineFlags::ThreadsFlag() {
  return {.names = "-t,--threads",
          .value = IntegerValue{&threads, 0, kMaxThreads},
          .placeholder = "N",
          .help =
              "Threads of the backend cpu that compute; 0 is one for each core. Without effect "
              "on the others.",
          .group = "model and device"};
}

Flag EngineFlags::ScheduleFlag() {
  return {.names = "--schedule",
          .value = TextValue{&schedule},
          .placeholder = "ORDER",
          .help =
              "In what order the dispatches that no barrier orders run: recorded (as the "
              "device likes), reversed, late-writes, random:SEED or interleaved[:SEED]. The "
              "results are the same bits unless a barrier is missing; two dispatches that "
              "conflict for certain are an error under any but recorded.",
          .group = "order"};
}

Flag EngineFlags::DropBarrierFlag() {
  return {.names = "--drop-barrier",
          .value = IntegerValue{&drop_barrier, 0, INT32_MAX},
          .placeholder = "N",
          .help =
              "Plants a fault: leaves out the Nth barrier of every pass through the model; 0 "
              "leaves out none.",
          .group = "order"};
}

Flag EngineFlags::CommitEveryFlag() {
  return {.names = "--commit-every",
          .value = IntegerValue{&commit_every, -1, INT32_MAX},
          .placeholder = "N",
          .help =
              "Hands a pass to the device in parts, so that it starts while the rest is "
              "encoded: a commit stands in for a barrier about every N dispatches. 0 is one "
              "command buffer a pass; -1 is 64 on a GPU with memory of its own, else 0. The "
              "results are the same bits.",
          .group = "order"};
}

Status CheckNamedOnce(std::string_view flag, std::vector<int64_t> numbers) {
  std::ranges::sort(numbers);
  const auto twice = std::ranges::adjacent_find(numbers);
  if (twice == numbers.end()) return {};
  return Fail(ErrorCode::kInvalidArgument, std::string(flag),
              fmt::format("{} names {} twice; name each once.", flag, *twice));
}

Status CheckDeviceName(const std::string& device) {
  if (device.empty() || device.find_first_not_of(" \t") != std::string::npos) return {};
  return Fail(
      ErrorCode::kInvalidArgument, "--device",
      fmt::format("--device \"{}\" names nothing; give a number that `assay devices` lists, "
                  "or a part of a name.",
                  device));
}

Status EngineFlags::Check() const {
  const Result<gpu::Schedule> parsed = gpu::ParseSchedule(schedule);
  if (!parsed) return Fail(ErrorCode::kInvalidArgument, "--schedule", parsed.error().message());
  if (backend == "vulkan") {
    ASSAY_TRY(CheckDeviceName(device));
    const std::vector<std::string> paths = SplitAtCommas(vulkan_disable);
    if (std::ranges::count(paths, "") > 0) {
      return Fail(
          ErrorCode::kInvalidArgument, "--vulkan-disable",
          fmt::format("--vulkan-disable \"{}\" has an empty name; put one comma between two "
                      "names and none at the ends.",
                      vulkan_disable));
    }
    const Status known = gpu::CheckVulkanPaths(paths);
    if (known) return {};
    return Fail(ErrorCode::kInvalidArgument, "--vulkan-disable", known.error().message());
  }
  const bool of_vulkan =
      device_given || kernels_given || !vulkan_disable.empty() || cooperative_matrix;
  if (!of_vulkan) return {};
  const std::string flag = device_given              ? "--device"
                           : kernels_given           ? "--kernels " + kernels
                           : !vulkan_disable.empty() ? "--vulkan-disable"
                                                     : "--cooperative-matrix";
  return Fail(ErrorCode::kInvalidArgument, flag,
              fmt::format("{} is of the backend vulkan, and the backend is {}; add --backend "
                          "vulkan.",
                          flag, backend));
}

llm::LoadOptions EngineFlags::load_options() const {
  return {.loaders = static_cast<int>(loaders), .mmap = mmap};
}

llm::DecoderOptions EngineFlags::decoder_options() const {
  llm::DecoderOptions options;
  options.context = static_cast<uint32_t>(context);
  options.drop_barrier = static_cast<uint64_t>(drop_barrier);
  options.kv = kv == "f32" ? llm::KvType::kF32 : llm::KvType::kF16;
  options.barriers = barriers == "serial"      ? gpu::BarrierMode::kSerial
                     : barriers == "automatic" ? gpu::BarrierMode::kAutomatic
                                               : gpu::BarrierMode::kManual;
  options.graph = graph == "on";
  options.cooperative_matrix = cooperative_matrix;
  // Tiles of 128 tokens: of 256 tokens a GPU's units would be idle half of the time.
  if (cooperative_matrix) options.prefill_chunk = kCooperativeChunk;
  if (commit_every >= 0) options.commit_every = static_cast<uint32_t>(commit_every);
  return options;
}

gpu::DeviceOptions EngineFlags::device_options() const { return {.checked = checked}; }

Result<std::shared_ptr<const gguf::File>> OpenModel(const EngineFlags& flags) {
  if (flags.model_given) return gguf::File::Open(flags.model);
  return gguf::File::FromMemory(EmbeddedModel(), std::string(kEmbeddedModelName));
}

Result<std::string> ModelDigest(Context& context, const EngineFlags& flags) {
  MappedFile file;
  std::span<const std::byte> bytes = EmbeddedModel();
  if (flags.model_given) {
    ASSAY_ASSIGN_OR_RETURN(file, MappedFile::Open(flags.model));
    bytes = file.bytes();
  }
  auto progress = context.StartProgress("digesting the model", ToMib(bytes.size()), "MiB");
  constexpr size_t kPieceBytes = size_t{4} << 20;
  Hasher hasher;
  for (size_t done = 0; done < bytes.size(); done += kPieceBytes) {
    if (context.cancelled()) {
      return Fail(ErrorCode::kCancelled, "", "Stopped while the model was digested.");
    }
    hasher.Update(bytes.subspan(done, std::min(kPieceBytes, bytes.size() - done)));
    progress.Update(ToMib(done));
  }
  return hasher.HexDigest();
}

Result<std::unique_ptr<llm::Model>> LoadModel(Context& context, const EngineFlags& flags,
                                              gpu::Device* device,
                                              std::shared_ptr<const gguf::File> file) {
  auto progress = context.StartProgress("loading weights", 0, "MiB");
  llm::LoadOptions options = flags.load_options();
  options.progress = [&progress](uint64_t done, uint64_t total) {
    progress.Update(ToMib(done), ToMib(total));
  };
  options.cancelled = [&context] { return context.cancelled(); };
  auto model = llm::Model::Load(device, std::move(file), options);
  if (model) return model;
  Error error = std::move(model).error();
  if (error.code() == ErrorCode::kCancelled) {
    return Fail(ErrorCode::kCancelled, "", "Stopped while the weights were loaded.");
  }
  if (error.code() != ErrorCode::kAllocation) return Fail(std::move(error));
  return Fail(std::move(error).Add(
      flags.backend == "cpu" && !flags.mmap
          ? "Give a smaller model (-m), or leave the weights in the file (--mmap)."
          : "Give a smaller model (-m), or another device."));
}

Result<std::unique_ptr<llm::Decoder>> MakeDecoder(const EngineFlags& flags, const llm::Model& model,
                                                  const llm::DecoderOptions& options,
                                                  std::string_view stopped) {
  auto decoder = SayStopped(llm::Decoder::Create(&model, options), stopped);
  if (decoder || decoder.error().code() != ErrorCode::kAllocation) return decoder;
  return Fail(std::move(decoder).error().Add(
      fmt::format("Give a smaller -c (it is {}){}, or a smaller model (-m).",
                  options.context > 0 ? options.context : model.config().context,
                  flags.kv == "f16" ? "" : ", --kv f16")));
}

std::vector<llm::TokenId> FixedIds(size_t count, uint32_t vocabulary) {
  std::vector<llm::TokenId> ids(count);
  uint64_t x = 1;
  for (llm::TokenId& id : ids) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    id = static_cast<llm::TokenId>((x >> 33) % std::min(256U, vocabulary));
  }
  return ids;
}

Result<std::unique_ptr<gpu::Backend>> MakeBackend(const Context& context, const EngineFlags& flags,
                                                  int64_t threads) {
  gpu::BackendOptions options;
  options.cancelled = [&context] { return context.cancelled(); };
  options.threads = static_cast<int>(threads);
  ASSAY_ASSIGN_OR_RETURN(options.schedule, gpu::ParseSchedule(flags.schedule));
  options.vulkan.device = flags.device;
  options.vulkan.kernels_from_source = flags.kernels == "source";
  options.vulkan.disabled = SplitAtCommas(flags.vulkan_disable);
  return gpu::MakeBackend(flags.backend, options);
}

}  // namespace assay::cli
