# SPDX-License-Identifier: Apache-2.0
# HM_PORTABLE: the programs start on any Linux with glibc 2.28 or later. The compiler is the same. Only the linker
# differs: it gives each function of the C library the version that glibc 2.28 has, and takes static libraries.
set(HM_PORTABLE "" CACHE PATH "Folder of scripts/portable-libraries: link for glibc 2.28")
if(NOT HM_PORTABLE)
  return()
endif()
if(NOT EXISTS ${HM_PORTABLE}/complete)
  message(FATAL_ERROR "${HM_PORTABLE} is missing or incomplete. Run scripts/portable-libraries ${HM_PORTABLE} first.")
endif()
list(PREPEND CMAKE_PREFIX_PATH ${HM_PORTABLE})
set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
# Google Benchmark is that of Debian, so its own headers serve. Compiled objects are then equal, and ccache has them.
find_package(benchmark REQUIRED)
set_target_properties(benchmark::benchmark PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "" INTERFACE_COMPILE_DEFINITIONS "")
set(DNNL_LIBRARY ${HM_PORTABLE}/lib/libdnnl.so.2 CACHE FILEPATH "" FORCE)
set(OpenMP_gomp_LIBRARY ${HM_PORTABLE}/lib/libgomp.so.1 CACHE FILEPATH "" FORCE)
foreach(name IN ITEMS libstdc++.a libgcc.a)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${name} OUTPUT_VARIABLE found
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  list(APPEND libraries ${found})
endforeach()
list(JOIN libraries " " libraries)
set(link "${HM_PORTABLE}/zig/ziglang/zig cc -target ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.2.28 <LINK_FLAGS>")
set(rest "<OBJECTS> -o <TARGET> <LINK_LIBRARIES> ${libraries} ${HM_PORTABLE}/lib/libhowmany_glibc.a -lunwind")
foreach(language IN ITEMS CXX CUDA)
  set(CMAKE_${language}_LINK_EXECUTABLE "${link} -pie ${rest}")
endforeach()
set(CMAKE_CXX_CREATE_SHARED_MODULE "${link} -shared <OBJECTS> -o <TARGET>")
