# SPDX-License-Identifier: Apache-2.0
# Writes the commit of the tree and its date to OUT at build time. Rewrites OUT only if the commit
# has changed.
cmake_minimum_required(VERSION 3.25)
find_program(GIT git)
set(commit unknown)
set(date "")
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  execute_process(COMMAND ${GIT} -C ${SOURCE} log -1 --format=%cs
    OUTPUT_VARIABLE day OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(failed EQUAL 0)
    set(commit ${said})
    set(date ${day})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define HM_COMMIT \"@commit@\"\n#define HM_COMMIT_DATE \"@date@\"\n" @ONLY)
