# assay_embed_spirv(TARGET lib OUTPUT folder/name.h SHADER file.comp NAME kName [NAMESPACE ns] [DEFINES A=1 B...]):
# compiles a GLSL compute shader with glslc, has spirv-val look at it, and gives `lib` a header "folder/name.h" with
# `inline constexpr assay::gpu::SpirvKernel kName`: the words, the GLSL text, the texts that it includes, and the defines.
#
# What a shader includes is written from src/ (or from the root of the tree), as in C++. A change to any of it builds the
# header again. One shader may be embedded under several names with different defines; its text is stored once.
set(ASSAY_SPIRV_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/embed_spirv_script.cmake")
# The run-time compiler sets the same.
set(ASSAY_GLSLC_OPTIONS --target-env=vulkan1.2 -O)

# What a linter needs to have been built.
add_custom_target(assay_shaders)

function(assay_embed_spirv)
  cmake_parse_arguments(ARG "" "TARGET;OUTPUT;SHADER;NAME;NAMESPACE" "DEFINES" ${ARGN})
  foreach(needed IN ITEMS TARGET OUTPUT SHADER NAME)
    if(NOT ARG_${needed})
      message(FATAL_ERROR "assay_embed_spirv: ${needed} is missing")
    endif()
  endforeach()
  if(NOT ARG_NAMESPACE)
    set(ARG_NAMESPACE assay::kernels)
  endif()
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/generated")
  set(header "${generated}/${ARG_OUTPUT}")
  cmake_path(GET header PARENT_PATH folder)
  file(MAKE_DIRECTORY "${folder}")
  cmake_path(ABSOLUTE_PATH ARG_SHADER OUTPUT_VARIABLE shader)
  set(flags)
  foreach(define IN LISTS ARG_DEFINES)
    list(APPEND flags "-D${define}")
  endforeach()
  add_custom_command(
    OUTPUT "${header}"
    COMMAND "${ASSAY_GLSLC}" ${ASSAY_GLSLC_OPTIONS} -I "${PROJECT_SOURCE_DIR}/src" -I "${PROJECT_SOURCE_DIR}" ${flags}
            -fshader-stage=compute -MD -MF "${header}.d" -MT "${header}" -o "${header}.spv" "${shader}"
    COMMAND "${ASSAY_SPIRV_VAL}" --target-env vulkan1.2 "${header}.spv"
    COMMAND "${CMAKE_COMMAND}" "-DHEADER=${header}" "-DOUTPUT=${ARG_OUTPUT}" "-DSHADER=${shader}"
            "-DROOT=${PROJECT_SOURCE_DIR}" "-DTEXTS=${CMAKE_BINARY_DIR}/generated/shader_text" "-DNAME=${ARG_NAME}"
            "-DNAMESPACE=${ARG_NAMESPACE}" "-DDEFINES=${ARG_DEFINES}" -P "${ASSAY_SPIRV_SCRIPT}"
    DEPENDS "${shader}" "${ASSAY_SPIRV_SCRIPT}"
    DEPFILE "${header}.d"
    COMMENT "Compiling shader ${ARG_NAME}"
    VERBATIM)
  string(MAKE_C_IDENTIFIER "assay_shader_${ARG_TARGET}_${ARG_NAME}" target)
  add_custom_target(${target} DEPENDS "${header}")
  add_dependencies(assay_shaders ${target})
  add_dependencies(${ARG_TARGET} ${target})
  target_sources(${ARG_TARGET} PRIVATE "${header}")
  target_include_directories(${ARG_TARGET} PRIVATE "${generated}" "${CMAKE_BINARY_DIR}/generated")
endfunction()
