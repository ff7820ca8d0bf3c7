#include "cli/devices_command.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "assay/gpu.h"
#include "assay/gpu_devices.h"

#include "base/text.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

// The devices of one backend, or why it has none.
struct Group {
  std::string backend;
  Result<std::vector<gpu::DeviceListing>> devices;
};

std::string Row(std::string_view name, std::string_view value) {
  return fmt::format("    {:<12} {}\n", name, Printable(value));
}

std::string Row(std::string_view name, uint64_t value, std::string_view unit) {
  return Row(name, fmt::format("{} {}", value, unit));
}

std::string ShownDevice(const gpu::DeviceListing& device) {
  const gpu::DeviceInfo& info = device.info;
  std::string text = fmt::format("{} {}: {}\n", info.backend, device.number, Printable(info.name));
  text += Row("type", device.type);
  if (!device.driver.empty()) {
    text += Row("driver", fmt::format("{}, Vulkan {}", device.driver, device.api_version));
  }
  if (!device.unusable.empty()) return text + Row("unusable", device.unusable);
  if (device.memory_bytes != 0) text += Row("memory", device.memory_bytes >> 20, "MiB");
  text += Row("host-visible", info.host_visible ? "yes" : "no");
  text += Row("code", info.code_format);
  text += Row("buffer", info.max_buffer_bytes, "bytes at most");
  text += Row("binding", info.max_binding_bytes, "bytes at most");
  text += Row("constants", info.max_constant_bytes, "bytes at most");
  if (device.max_workgroup_invocations != 0) {
    text += Row("workgroup", device.max_workgroup_invocations, "invocations at most");
  }
  if (info.subgroup_size != 0) text += Row("subgroup", info.subgroup_size, "invocations");
  if (!info.features.empty()) {
    text += Row("optional", fmt::format("{}", fmt::join(info.features, ", ")));
  }
  return text;
}

// Of a figure that 0 says there is none of.
Json OrNull(uint64_t value) { return value == 0 ? Json() : Json(value); }

Json JsonDevice(const gpu::DeviceListing& device) {
  const gpu::DeviceInfo& info = device.info;
  Json json = {{"backend", info.backend},
               {"number", device.number},
               {"name", info.name},
               {"type", device.type},
               {"driver", device.driver},
               {"vulkan", device.api_version},
               {"memory_bytes", OrNull(device.memory_bytes)},
               {"host_visible", info.host_visible},
               {"code_format", info.code_format},
               {"max_buffer_bytes", info.max_buffer_bytes},
               {"max_binding_bytes", info.max_binding_bytes},
               {"max_constant_bytes", info.max_constant_bytes},
               {"max_workgroup_invocations", OrNull(device.max_workgroup_invocations)},
               {"subgroup_size", OrNull(info.subgroup_size)},
               {"threads", OrNull(info.threads)},
               {"optional", info.features}};
  if (!device.unusable.empty()) json["unusable"] = device.unusable;
  return json;
}

class DevicesCommand final : public Command {
 public:
  CommandSpec Describe() override {
    return {
        .name = "devices",
        .summary = "Lists what there is to run on.",
        .description =
            "Goes through every backend and lists its devices: number, name, type, driver, "
            "memory, limits, and the optional paths of the backend that the device has. --backend "
            "and --device of the other commands take the names and numbers that are shown. A "
            "backend that cannot start here is named with the reason.",
        .flags = {{.names = "--json",
                   .value = SwitchValue{&json_},
                   .help = "Prints one JSON object."}},
        .examples = {{"assay devices", "Lists all devices."},
                     {"assay run --backend vulkan --device 0 -p Once",
                      "Runs on the first Vulkan device."}},
        .exit_meanings = {{kExitOk, "The devices were listed."},
                          {kExitFailed, "The list could not be written."}},
    };
  }

  Result<int> Run(Context& context) override {
    std::vector<Group> groups;
    for (const std::string& backend : gpu::BackendNames()) {
      // A driver may take seconds to start.
      if (context.cancelled()) {
        return Fail(ErrorCode::kCancelled, "", "Stopped before every backend was asked.");
      }
      groups.push_back({backend, gpu::ListDevices(backend)});
    }
    context.Print(json_ ? ShownJson(groups) : ShownText(groups));
    return kExitOk;
  }

 private:
  static std::string ShownText(const std::vector<Group>& groups) {
    std::string text;
    for (const Group& group : groups) {
      if (!group.devices) {
        text += fmt::format("{}: no device\n", group.backend);
        text += Row("reason", group.devices.error().ToString());
        continue;
      }
      for (const gpu::DeviceListing& device : *group.devices) text += ShownDevice(device);
    }
    return text;
  }

  static std::string ShownJson(const std::vector<Group>& groups) {
    Json devices = Json::array();
    Json missing = Json::array();
    for (const Group& group : groups) {
      if (!group.devices) {
        missing.push_back(
            {{"backend", group.backend}, {"reason", group.devices.error().ToString()}});
        continue;
      }
      for (const gpu::DeviceListing& device : *group.devices) {
        devices.push_back(JsonDevice(device));
      }
    }
    return Json{{"devices", devices}, {"missing", missing}}.dump(2) + "\n";
  }

  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDevicesCommand() { return std::make_unique<DevicesCommand>(); }

}  // namespace assay::cli
