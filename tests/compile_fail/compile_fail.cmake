# cmake -DCOMPILER= -DSOURCE= -DINCLUDE= -DSRC= -DPATTERN= -P compile_fail.cmake
execute_process(
  COMMAND "${COMPILER}" -std=c++20 -Wall -Wextra -Werror -fsyntax-only "-I${INCLUDE}" "-I${SRC}" -DASSAY_MISUSE "${SOURCE}"
  RESULT_VARIABLE status ERROR_VARIABLE said)
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles with its misuse.")
endif()
if(NOT said MATCHES "${PATTERN}")
  message(FATAL_ERROR "${SOURCE} fails with another message than \"${PATTERN}\":\n${said}")
endif()
