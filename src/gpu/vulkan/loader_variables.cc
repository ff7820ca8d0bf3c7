#include "gpu/vulkan/loader_variables.h"

#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

namespace assay::gpu::vulkan {
namespace {

void Append(std::string_view clause, std::string* text) {
  if (!text->empty()) *text += "; ";
  *text += clause;
}

// The loader looks nowhere else; the second name is the older one, which counts without the first.
void AppendNamedFiles(std::string* text) {
  for (const char* const name : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    Append(fmt::format("the loader looks for drivers at \"{}\" alone, since the variable {} says "
                       "so: unset it, or name the driver's .json file in it",
                       value, name),
           text);
    return;
  }
}

}  // namespace

std::string HiddenDrivers() {
  std::string text;
  AppendNamedFiles(&text);
  if (const char* const value = std::getenv("VK_LOADER_DRIVERS_SELECT")) {
    Append(fmt::format("the loader takes no drivers but those whose .json file matches \"{}\", "
                       "since the variable VK_LOADER_DRIVERS_SELECT says so: unset it, or name the "
                       "driver's .json file in it",
                       value),
           &text);
  }
  if (const char* const value = std::getenv("VK_LOADER_DRIVERS_DISABLE")) {
    Append(fmt::format("the loader leaves out the drivers whose .json file matches \"{}\", since "
                       "the variable VK_LOADER_DRIVERS_DISABLE says so: unset it, or name fewer "
                       "drivers in it",
                       value),
           &text);
  }
  // A file that is looked at may name a library that is not there, or none.
  if (!text.empty()) {
    Append("where that is meant, run it with VK_LOADER_DEBUG=error to see what the loader lacks",
           &text);
  }
  return text;
}

std::string DamagedFiles() {
  std::string text;
  AppendNamedFiles(&text);
  if (const char* const value = std::getenv("VK_ADD_DRIVER_FILES")) {
    Append(fmt::format("the loader also looks for drivers at \"{}\", since the variable "
                       "VK_ADD_DRIVER_FILES says so: unset it, or mend that file",
                       value),
           &text);
  }
  Append("run it with VK_LOADER_DEBUG=error to see which file", &text);
  return text;
}

}  // namespace assay::gpu::vulkan
