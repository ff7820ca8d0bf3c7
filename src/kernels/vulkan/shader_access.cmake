# The build stops where a shader uses its bindings in another way than its op declares.
assay_library(assay_shader_access
  SOURCES vulkan/reflect_shader.cc vulkan/shader_access.cc
  DEPS assay_kernels_testing assay_test_support
  PRIVATE_DEPS fmt::fmt spirv-cross-core)
if(NOT ASSAY_FUZZ)
  add_executable(check_shaders "${CMAKE_SOURCE_DIR}/tests/support/check_shaders.cc")
  target_link_libraries(check_shaders PRIVATE assay_shader_access assay_options fmt::fmt)
  set(checked "${CMAKE_CURRENT_BINARY_DIR}/shaders_checked")
  add_custom_command(OUTPUT "${checked}"
    COMMAND check_shaders
    COMMAND "${CMAKE_COMMAND}" -E touch "${checked}"
    DEPENDS check_shaders
    COMMENT "Checking shaders against what the ops declare"
    VERBATIM)
  add_custom_target(assay_check_shaders ALL DEPENDS "${checked}")
  add_test(NAME kernels.shaders_do_what_ops_declare COMMAND check_shaders)
endif()

assay_test(shader_access_test SOURCES vulkan/shader_access_test.cc DEPS assay_shader_access fmt::fmt)
function(access_shader name)
  assay_embed_spirv(TARGET shader_access_test OUTPUT access_shaders/${name}.h SHADER vulkan/testdata/access.comp
    NAME ${name} DEFINES ${ARGN})
endfunction()
access_shader(kHonest)
foreach(lie IN ITEMS WRITES_INPUT WRITES_VIEW UNUSED_BINDING READS_OUTPUT READS_BACK OTHER_SET FOURTH_BINDING UNIFORM_BUFFER LONG_PUSH)
  access_shader(k${lie} ${lie}=1)
endforeach()
access_shader(kTHREADS THREADS=32)
# The optimizer takes out what is not used; here it stays.
if(TARGET shader_access_test)
  set(unoptimized "${CMAKE_CURRENT_BINARY_DIR}/generated/access_shaders/unused_unoptimized.inc")
  add_custom_command(OUTPUT "${unoptimized}"
    COMMAND "${ASSAY_GLSLC}" ${ASSAY_GLSLC_OPTIONS} -O0 -DUNUSED_BINDING=1 -mfmt=num -o "${unoptimized}"
            "${CMAKE_CURRENT_SOURCE_DIR}/vulkan/testdata/access.comp"
    DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/vulkan/testdata/access.comp"
    VERBATIM)
  target_sources(shader_access_test PRIVATE "${unoptimized}")
  add_custom_target(assay_shader_unoptimized DEPENDS "${unoptimized}")
  add_dependencies(assay_shaders assay_shader_unoptimized)
  add_dependencies(shader_access_test assay_shader_unoptimized)
endif()
