# SPDX-License-Identifier: Apache-2.0
# Installs one folder that runs on another Linux with a newer glibc, without root: bin/ (the
# programs), lib/ (all their libraries except the C library), libexec/howmany/ (the tests of
# `howmany selftest`), and cuda12/bin (the programs that howmany starts if the driver serves CUDA 12,
# of preset cuda12). `cpack` makes a tar.gz of it. scripts/bundle does all of this, and can make a
# Python wheel instead. It uses DT_RPATH instead of DT_RUNPATH, because DT_RPATH also holds for the
# dependencies of libraries.

file(GLOB hm_bench_sources RELATIVE ${PROJECT_SOURCE_DIR}/benches ${PROJECT_SOURCE_DIR}/benches/*/*_bench.cpp)
set(hm_bundled howmany howmany-train howmany-devices howmany-memory)
foreach(source IN LISTS hm_bench_sources)
  cmake_path(GET source STEM program)
  list(APPEND hm_bundled ${program})
endforeach()
add_custom_target(programs DEPENDS ${hm_bundled})  # built by scripts/run
list(REMOVE_ITEM hm_bundled howmany)

# Each program would repeat 10 MB of libraries. So one has the code of all but `howmany`, and the others only start it.
# hm_join(program...): builds bin/howmany-programs and bin/stubs/<program>.
function(hm_join)
  foreach(program IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER ${program}_main function)
    string(APPEND programs " X(\"${program}\", ${function})")
    set(object ${CMAKE_CURRENT_BINARY_DIR}/joined/${program}.o)
    add_custom_command(OUTPUT ${object} DEPENDS $<TARGET_OBJECTS:${program}_objects> COMMAND_EXPAND_LISTS VERBATIM
      COMMAND ${CMAKE_OBJCOPY} --redefine-sym main=${function} $<TARGET_OBJECTS:${program}_objects> ${object})
    list(APPEND objects ${object})
    add_executable(${program}-stub packaging/portable/stub.cpp)
    target_link_libraries(${program}-stub PRIVATE hm_flags)
    set_target_properties(${program}-stub PROPERTIES OUTPUT_NAME ${program} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/stubs)
    list(APPEND stubs ${program}-stub)
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/joined)
  configure_file(packaging/portable/programs.cpp.in joined/programs.cpp)
  hm_program(howmany-programs SOURCES ${CMAKE_CURRENT_BINARY_DIR}/joined/programs.cpp ${objects} LIBS howmany_bench_support)
  add_dependencies(howmany-programs howmany_hook)
  set(hm_bundled howmany-programs ${stubs} PARENT_SCOPE)
endfunction()
if(HM_PORTABLE)
  hm_join(${hm_bundled})
endif()
if(HM_BUNDLE_FOR_CUDA12)
  add_custom_target(packed DEPENDS ${hm_bundled})
  set_target_properties(${hm_bundled} PROPERTIES INSTALL_RPATH $ORIGIN/../../lib)
  foreach(target IN LISTS hm_bundled)
    target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  endforeach()
  set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
  install(TARGETS ${hm_bundled} DESTINATION ${HM_PROGRAM_DIR})
  return()
endif()
list(APPEND hm_bundled howmany)
set(hm_selftests core_tests parallel_tests)  # must equal the list in reports/cli/selftest.h
option(HM_BUNDLE_TESTS "Pack the programs that scripts/check-gpu runs in addition to `howmany selftest`" OFF)
if(HM_BUNDLE_TESTS)
  foreach(program IN ITEMS core_cuda_tests core_cudnn_tests core_cupti_tests)
    if(TARGET ${program})
      list(APPEND hm_selftests ${program})
    endif()
  endforeach()
endif()

# All installed targets. Installation and packing do not build other tests.
add_custom_target(packed DEPENDS ${hm_bundled} ${hm_selftests})
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

# Documentation, completions and man pages are installed here. The wheel moves this folder to the
# environment's root.
set(HM_SHARE_DIR share)
set(program_rpath $ORIGIN/../lib)
set(test_rpath $ORIGIN/../../lib)
if(HM_HAVE_CUDA)  # in a wheel, PyPI's nvidia-* packages are next to the package folder
  foreach(part IN ITEMS cu${CUDAToolkit_VERSION_MAJOR} cublas cudnn nccl)
    list(APPEND program_rpath $ORIGIN/../../nvidia/${part}/lib)
    list(APPEND test_rpath $ORIGIN/../../../nvidia/${part}/lib)
  endforeach()
endif()
set_target_properties(${hm_bundled} PROPERTIES INSTALL_RPATH "${program_rpath}")
set_target_properties(${hm_selftests} PROPERTIES INSTALL_RPATH "${test_rpath}")
foreach(target IN LISTS hm_bundled hm_selftests)
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
endforeach()
install(TARGETS ${hm_bundled} RUNTIME_DEPENDENCY_SET hm_libraries DESTINATION bin)
install(TARGETS ${hm_selftests} RUNTIME_DEPENDENCY_SET hm_libraries DESTINATION libexec/howmany)
install(FILES ${PROJECT_SOURCE_DIR}/tests/data/golden_sums.json DESTINATION libexec/howmany)
# The C library must match the target's kernel and loader; the driver's libraries must match its
# driver. oneDNN of a portable bundle works with any libstdc++, and Debian's needs a newer C library.
if(HM_PORTABLE)
  set(system_cxx "^lib(stdc\\+\\+|gcc_s)\\.so")
endif()
install(RUNTIME_DEPENDENCY_SET hm_libraries DESTINATION lib
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|util|anl|nsl)\\.so" ${system_cxx} "^libcuda\\." "^libnvidia-")
# NVIDIA's libraries are opened at run time by these names, first in this folder (the programs'
# RPATH). cuDNN opens its own parts and NVRTC next to itself.
option(HM_BUNDLE_CUDA "Carry cuBLASLt, cuDNN, NVRTC, NCCL and CUPTI, 1.4 GB, for clusters that lack them" OFF)
if(HM_BUNDLE_CUDA)
  foreach(library IN ITEMS ${CUBLASLT_LIBRARY} ${CUDNN_LIBRARY} ${NCCL_LIBRARY} ${CUPTI_LIBRARY})
    cmake_path(GET library PARENT_PATH folder)
    cmake_path(GET library STEM name)
    file(GLOB found ${folder}/${name}.so.[0-9]* ${folder}/${name}_*.so.[0-9]* ${folder}/libnvrtc.so.[0-9]*
      ${folder}/libnvrtc-builtins.so.[0-9]*)
    install(FILES ${found} DESTINATION lib)
  endforeach()
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${HM_SHARE_DIR}/doc/howmany)
install(DIRECTORY docs examples DESTINATION ${HM_SHARE_DIR}/doc/howmany USE_SOURCE_PERMISSIONS
  PATTERN results EXCLUDE PATTERN adding EXCLUDE PATTERN examples/CMakeLists.txt EXCLUDE)

if(HM_PORTABLE)
  install(DIRECTORY ${HM_PORTABLE}/licenses DESTINATION ${HM_SHARE_DIR}/doc/howmany)
endif()
install(FILES packaging/modulefiles/howmany.lua DESTINATION ${HM_SHARE_DIR}/modulefiles/howmany RENAME ${PROJECT_VERSION}.lua)
install(FILES packaging/modulefiles/howmany.tcl DESTINATION ${HM_SHARE_DIR}/modulefiles/howmany RENAME ${PROJECT_VERSION})

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_FILE_NAME "howmany-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_STRIP_FILES TRUE)
set(CPACK_VERBATIM_VARIABLES TRUE)
set(HM_BUNDLE_CUDA12 "" CACHE PATH "Build folder of preset cuda12. Its programs are packed too")
if(HM_BUNDLE_CUDA12)
  set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};${PROJECT_NAME};ALL;/;${HM_BUNDLE_CUDA12};${PROJECT_NAME};ALL;/")
endif()
include(CPack)
