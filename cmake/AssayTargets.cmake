# The four kinds of target. Every test in the tree is made by assay_test(), so that one place decides how it is
# built, shuffled and listed; tools/presubmit.py compares the sources on disk with these calls.

add_library(assay_options INTERFACE)
target_include_directories(assay_options INTERFACE "${CMAKE_SOURCE_DIR}/include" "${CMAKE_SOURCE_DIR}/src")
target_compile_options(assay_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wswitch -Werror -fno-omit-frame-pointer)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # Highway's one-lane baseline does not compile with g++ 12; SSE4.2 is the oldest processor supported.
  target_compile_options(assay_options INTERFACE -msse4.2 -maes -mpclmul)
endif()
if(ASSAY_SANITIZE)
  target_compile_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()
if(ASSAY_FUZZ)
  target_compile_options(assay_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
find_program(ASSAY_MOLD mold)
if(ASSAY_MOLD)
  target_link_options(assay_options INTERFACE -fuse-ld=mold)
endif()

if(ASSAY_DEVELOPER_MODE)
  # What the thread-sanitizer run and the fuzz run need to build, and no more.
  add_custom_target(assay_tsan_tests)
  add_custom_target(assay_fuzzers)
endif()

# assay_library(NAME SOURCES a.cc... [DEPS lib...] [PRIVATE_DEPS lib...])
function(assay_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC assay_options ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# assay_test(NAME SOURCES a_test.cc... DEPS lib... [LABELS label...]): one gtest binary, each case a CTest test of
# its own, named "<Suite>.<Case>". Label "tsan" puts it into the thread-sanitizer run as well. Property tests get a
# fixed seed, so that a run of CTest repeats.
function(assay_test name)
  if(NOT ASSAY_DEVELOPER_MODE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} assay_options GTest::gmock GTest::gtest GTest::gtest_main)
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE ASSAY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  if(ASSAY_FUZZ)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  include(GoogleTest)
  if(ARG_LABELS)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300
      ENVIRONMENT "RC_PARAMS=seed=1")
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300
      ENVIRONMENT "RC_PARAMS=seed=1")
  endif()
  if("tsan" IN_LIST ARG_LABELS)
    add_dependencies(assay_tsan_tests ${name})
  endif()
endfunction()

# assay_bench(NAME SOURCES a_bench.cc... DEPS lib...): a Google Benchmark binary; CTest runs one iteration of it, so
# that it cannot rot.
function(assay_bench name)
  if(NOT ASSAY_DEVELOPER_MODE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} assay_options benchmark::benchmark benchmark::benchmark_main)
  if(NOT ASSAY_BENCH)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  add_test(NAME bench_smoke.${name} COMMAND ${name} --benchmark_min_time=0.001)
  set_tests_properties(bench_smoke.${name} PROPERTIES ENVIRONMENT "ASSAY_BENCH_SMOKE=1" TIMEOUT 120)
endfunction()

# assay_fuzz(NAME SOURCES a_fuzz.cc DEPS lib...): LLVMFuzzerTestOneInput. In every build it is linked with a plain main
# that replays fuzz/corpus/<name> under CTest; with ASSAY_FUZZ it is a libFuzzer program, which CTest starts from that
# corpus, with fuzz/<name>.dict where there is one, for ASSAY_FUZZ_SECONDS. New inputs go to the build folder.
function(assay_fuzz name)
  if(NOT ASSAY_DEVELOPER_MODE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  set(corpus "${CMAKE_SOURCE_DIR}/fuzz/corpus/${name}")
  if(ASSAY_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(assay_fuzzers ${name})
    set(found "${CMAKE_BINARY_DIR}/fuzz-corpus/${name}")
    file(MAKE_DIRECTORY "${found}")
    set(dictionary)
    if(EXISTS "${CMAKE_SOURCE_DIR}/fuzz/${name}.dict")
      set(dictionary "-dict=${CMAKE_SOURCE_DIR}/fuzz/${name}.dict")
    endif()
    add_test(NAME fuzz_run.${name}
      COMMAND ${name} -max_total_time=${ASSAY_FUZZ_SECONDS} -seed=1 -timeout=10 -rss_limit_mb=2048
        -print_final_stats=1 "-artifact_prefix=${CMAKE_BINARY_DIR}/fuzz-failure-${name}-" ${dictionary}
        "${found}" "${corpus}")
    math(EXPR limit "${ASSAY_FUZZ_SECONDS} + 120")
    set_tests_properties(fuzz_run.${name} PROPERTIES TIMEOUT ${limit})
  else()
    add_executable(${name} ${ARG_SOURCES} "${CMAKE_SOURCE_DIR}/fuzz/replay_main.cc")
    add_test(NAME fuzz_replay.${name} COMMAND ${name} "${corpus}")
    set_tests_properties(fuzz_replay.${name} PROPERTIES TIMEOUT 120)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} assay_options)
endfunction()
