# The last step of assay_embed_spirv(): writes HEADER from HEADER.spv, the shader's text and the files that HEADER.d names.

# `text` as a C++ raw string in a header of its own, so that all kernels made of one file share it. Kernels are built at
# the same time, so the file appears whole, by renaming.
function(write_text file result_name result_constant)
  cmake_path(IS_PREFIX ROOT "${file}" NORMALIZE below_root)
  if(NOT below_root)
    message(FATAL_ERROR "Shader file ${file} lies outside the tree.")
  endif()
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${ROOT}" OUTPUT_VARIABLE name)
  string(REGEX REPLACE "^src/" "" name "${name}")
  string(MAKE_C_IDENTIFIER "${name}" identifier)
  string(TOUPPER "${identifier}" guard)
  file(READ "${file}" text)
  set(path "${TEXTS}/${identifier}.h")
  set(wanted "// Generated from ${name}; do not edit.
#ifndef ASSAY_SHADER_TEXT_${guard}
#define ASSAY_SHADER_TEXT_${guard}
#include <string_view>
namespace assay::shader_text {
inline constexpr std::string_view k_${identifier} = R\"glsl(${text})glsl\";
}  // namespace assay::shader_text
#endif
")
  set(present "")
  if(EXISTS "${path}")
    file(READ "${path}" present)
  endif()
  if(NOT present STREQUAL wanted)
    file(WRITE "${path}.${NAME}.tmp" "${wanted}")
    file(RENAME "${path}.${NAME}.tmp" "${path}")
  endif()
  set(${result_name} "${name}" PARENT_SCOPE)
  set(${result_constant} "k_${identifier}" PARENT_SCOPE)
endfunction()

file(READ "${HEADER}.spv" words HEX)
string(LENGTH "${words}" digits)
math(EXPR word_count "${digits} / 8")
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${words}")

write_text("${SHADER}" shader_name shader_constant)
string(MAKE_C_IDENTIFIER "${shader_name}" identifier)
set(text_headers "#include \"shader_text/${identifier}.h\"\n")

file(READ "${HEADER}.d" dependencies)
string(REGEX REPLACE "^[^:]*:" "" dependencies "${dependencies}")
string(REGEX REPLACE "[ \\\n]+" ";" dependencies "${dependencies}")
file(READ "${SHADER}" all_text)
set(include_files)
foreach(file IN LISTS dependencies)
  if(file STREQUAL "" OR file STREQUAL SHADER)
    continue()
  endif()
  list(APPEND include_files "${file}")
  file(READ "${file}" text)
  string(APPEND all_text "${text}")
endforeach()
set(includes "")
foreach(file IN LISTS include_files)
  write_text("${file}" name constant)
  string(MAKE_C_IDENTIFIER "${name}" identifier)
  string(FIND "${all_text}" "\"${name}\"" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${shader_name} includes ${file} by another name than \"${name}\", under which it is embedded.")
  endif()
  string(APPEND text_headers "#include \"shader_text/${identifier}.h\"\n")
  string(APPEND includes "    {\"${name}\", ::assay::shader_text::${constant}},\n")
endforeach()
list(LENGTH include_files include_count)
set(defines "")
foreach(define IN LISTS DEFINES)
  string(APPEND defines "    \"${define}\",\n")
endforeach()
list(LENGTH DEFINES define_count)

# A span of no elements has no array to point to.
set(includes_array "")
set(includes_span "{}")
if(include_count GREATER 0)
  set(includes_array "inline constexpr std::array<::assay::gpu::ShaderFile, ${include_count}> ${NAME}Includes = {{\n${includes}}};\n")
  set(includes_span "${NAME}Includes")
endif()
set(defines_array "")
set(defines_span "{}")
if(define_count GREATER 0)
  set(defines_array "inline constexpr std::array<std::string_view, ${define_count}> ${NAME}Defines = {{\n${defines}}};\n")
  set(defines_span "${NAME}Defines")
endif()
string(MAKE_C_IDENTIFIER "${OUTPUT}" guard)
string(TOUPPER "${guard}" guard)
file(WRITE "${HEADER}" "// Generated from ${shader_name}; do not edit.
#ifndef ASSAY_SHADER_${guard}
#define ASSAY_SHADER_${guard}

#include <array>
#include <cstdint>
#include <string_view>

#include \"gpu/vulkan/spirv_kernel.h\"
${text_headers}
namespace ${NAMESPACE} {

// clang-format off
inline constexpr std::array<uint32_t, ${word_count}> ${NAME}Words = {${words}};
${includes_array}${defines_array}inline constexpr ::assay::gpu::SpirvKernel ${NAME} = {
    ${NAME}Words, ::assay::shader_text::${shader_constant}, ${includes_span}, ${defines_span}, {}};
// clang-format on

}  // namespace ${NAMESPACE}

#endif
")
