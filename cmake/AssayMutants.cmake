# assay_mutant(NAME LIBRARY_SOURCES path/in/tree.cc... TEST_SOURCES path/in/tree_test.cc... DEPS lib...): builds the
# library sources that tests/mutants/NAME.patch changes, with its fault in, and the tests against them; CTest runs it as
# mutant.NAME, which passes only when exactly the tests that the patch names fail. A patch that does not apply fails the
# build.
#
# DEPS holds the library that the sources are from: the linker takes the changed objects first and the rest from there.
# A patch may therefore change no header.
function(assay_mutant name)
  if(NOT ASSAY_DEVELOPER_MODE OR NOT ASSAY_MUTANTS OR ASSAY_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LIBRARY_SOURCES;TEST_SOURCES;DEPS" ${ARGN})
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(script "${CMAKE_SOURCE_DIR}/tests/mutants/mutant.py")
  set(patch "${CMAKE_SOURCE_DIR}/tests/mutants/${name}.patch")
  set(folder "${CMAKE_BINARY_DIR}/mutants/${name}")

  list(TRANSFORM ARG_LIBRARY_SOURCES PREPEND "${folder}/" OUTPUT_VARIABLE mutated)
  list(TRANSFORM ARG_LIBRARY_SOURCES PREPEND "${CMAKE_SOURCE_DIR}/" OUTPUT_VARIABLE originals)
  add_custom_command(OUTPUT ${mutated}
    COMMAND Python3::Interpreter "${script}" apply --root "${CMAKE_SOURCE_DIR}" --patch "${patch}" --out "${folder}"
      ${ARG_LIBRARY_SOURCES}
    DEPENDS "${script}" "${patch}" ${originals}
    COMMENT "Putting the fault of ${name} in" VERBATIM)

  # The tests are compiled once for all mutants that share them.
  list(JOIN ARG_TEST_SOURCES " " joined)
  string(MD5 tests "${joined}")
  string(SUBSTRING "mutant_tests_${tests}" 0 24 tests)
  if(NOT TARGET ${tests})
    list(TRANSFORM ARG_TEST_SOURCES PREPEND "${CMAKE_SOURCE_DIR}/")
    add_library(${tests} OBJECT ${ARG_TEST_SOURCES})
    target_link_libraries(${tests} PRIVATE ${ARG_DEPS} assay_options GTest::gmock GTest::gtest)
    target_compile_definitions(${tests} PRIVATE ASSAY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  endif()

  set(target mutant_${name})
  add_executable(${target} ${mutated} $<TARGET_OBJECTS:${tests}>)
  target_link_libraries(${target} PRIVATE ${ARG_DEPS} assay_options GTest::gmock GTest::gtest GTest::gtest_main)
  add_test(NAME mutant.${name}
    COMMAND Python3::Interpreter "${script}" check --patch "${patch}" --binary $<TARGET_FILE:${target}>)
  set_tests_properties(mutant.${name} PROPERTIES LABELS mutants TIMEOUT 300)
endfunction()
