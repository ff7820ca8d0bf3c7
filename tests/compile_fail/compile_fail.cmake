# cmake -DCOMPILER= -DSOURCE= -DINCLUDE= -DSRC= -DPATTERN= -P compile_fail.cmake
#
# The source as it stands must compile, so that a missing header is not taken for the misuse. With ASSAY_MISUSE it must
# fail with exactly one error, in the source itself, whose line matches the pattern.
set(command "${COMPILER}" -std=c++20 -Wall -Wextra -Werror -fsyntax-only "-I${INCLUDE}" "-I${SRC}")
execute_process(COMMAND ${command} "${SOURCE}" RESULT_VARIABLE status ERROR_VARIABLE said)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} does not compile without its misuse:\n${said}")
endif()
execute_process(COMMAND ${command} -DASSAY_MISUSE "${SOURCE}" RESULT_VARIABLE status ERROR_VARIABLE said)
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles with its misuse.")
endif()
string(REGEX MATCHALL "[^\n]*: (fatal )?error: [^\n]*" errors "${said}")
list(LENGTH errors count)
get_filename_component(name "${SOURCE}" NAME)
if(NOT count EQUAL 1 OR NOT errors MATCHES "${name}:[0-9]+:[0-9]+: error: .*(${PATTERN})")
  message(FATAL_ERROR "${SOURCE} must fail with one error that matches \"${PATTERN}\", but:\n${said}")
endif()
