# What makes a build sooner done.

# hm_front(target...): text and tests, nothing that is measured, are optimised less, and as hm_fewer_checks(target...),
# with no memory of their own, go without the checks that find little there beside the address sanitizer.
function(hm_fewer_checks)
  set_target_properties(${ARGN} PROPERTIES HM_FEWER_CHECKS ON)
endfunction()
function(hm_front)
  set_target_properties(${ARGN} PROPERTIES HM_FRONT ON)
  hm_fewer_checks(${ARGN})
endfunction()
function(hm_options_of property options)
  target_compile_options(hm_flags INTERFACE
    "$<$<AND:$<BOOL:$<TARGET_PROPERTY:${property}>>,$<COMPILE_LANGUAGE:CXX>>:${options}>")
endfunction()
hm_options_of(HM_FRONT "$<$<CONFIG:Release>:-O1>")
if(HM_SANITIZE MATCHES undefined)
  hm_options_of(HM_FEWER_CHECKS -fno-sanitize=null,alignment,vptr)
endif()

# Where every build is a whole one, as in CI, much of the compiling is the same headers again and again. What files
# include themselves is checked where they are not precompiled: in the other presets and by checks.headers.
option(HM_PRECOMPILE "Parse the standard library's, fmt's and the tests' headers once" OFF)
function(hm_precompiled name)
  cmake_parse_arguments(P "" "" "LIBS;HEADERS" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/generated/${name}.cpp "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/generated/${name}.cpp)
  target_link_libraries(${name} PRIVATE hm_flags ${P_LIBS})
  target_precompile_headers(${name} PRIVATE ${P_HEADERS})
endfunction()
if(HM_PRECOMPILE)
  # core has OpenMP, and GCC takes these headers only where it was the same.
  target_compile_options(hm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${OpenMP_CXX_FLAGS}>")
  set(hm_common <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <filesystem> <fstream> <functional>
    <iostream> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string> <thread> <tuple>
    <unordered_map> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)
  hm_precompiled(hm_common_headers LIBS fmt::fmt HEADERS ${hm_common})
  hm_precompiled(hm_test_headers LIBS fmt::fmt GTest::gmock HEADERS ${hm_common} <gmock/gmock.h> <gtest/gtest.h>)
endif()
function(hm_reuse headers target)
  if(HM_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${headers})
  endif()
endfunction()
