# SPDX-License-Identifier: Apache-2.0
# Writes the commit of the tree to OUT at build time. Rewrites OUT only if the commit
# has changed.
cmake_minimum_required(VERSION 3.25)
find_program(GIT git)
set(commit unknown)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed EQUAL 0)
    set(commit ${said})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define HM_COMMIT \"@commit@\"\n" @ONLY)
