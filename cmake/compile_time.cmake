# SPDX-License-Identifier: Apache-2.0
# Reduces the time of builds.

# hm_front(target...): for text and tests, which are not measured: less optimisation, and
# hm_fewer_checks().
# hm_fewer_checks(target...): for targets that do not manage memory: omits the checks that find
# little in addition to the address sanitizer.
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

# HM_FAST_BUILD: compiles less, for complete builds. It is off in the dev preset, in which one
# changed file is one compile and each file must have all its includes.
#   * hm_precompiled(name [LIBS lib...] HEADERS header...): headers that hm_reuse(name target...) parses once.
#   * hm_unity(target [size] [ALONE regex]): compiles sources of one folder together, `size` at a
#     time. Sources that match `regex`, the kernels, are compiled alone, so that they are optimised
#     as in other builds.
option(HM_FAST_BUILD "Precompile headers and compile sources in batches" ON)

function(hm_precompiled name)
  if(NOT HM_FAST_BUILD)
    return()
  endif()
  cmake_parse_arguments(P "FRONT" "" "LIBS;HEADERS" ${ARGN})
  file(WRITE ${PROJECT_BINARY_DIR}/generated/${name}.cpp "")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/generated/${name}.cpp)
  target_link_libraries(${name} PRIVATE hm_flags ${P_LIBS})
  target_precompile_headers(${name} PRIVATE ${P_HEADERS})
  if(P_FRONT)
    hm_front(${name})
  endif()
endfunction()

function(hm_reuse headers)
  if(HM_FAST_BUILD)
    foreach(target IN LISTS ARGN)
      target_precompile_headers(${target} REUSE_FROM ${headers})
    endforeach()
  endif()
endfunction()

# A batch is the next sources of a folder in the order of their names. Files that include CLI11 form
# their own batches. Files that depend on the optional parts are compiled alone, so a new part
# recompiles little else.
function(hm_unity target)
  if(NOT HM_FAST_BUILD)
    return()
  endif()
  cmake_parse_arguments(U "" "ALONE" "" ${ARGN})
  set(size 22)
  if(U_UNPARSED_ARGUMENTS)
    set(size ${U_UNPARSED_ARGUMENTS})
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cpp$")
  list(SORT sources)
  set(folder "")
  set(count 0)
  set(batch 0)
  foreach(source IN LISTS sources)
    if(U_ALONE AND source MATCHES "${U_ALONE}")
      continue()
    endif()
    file(STRINGS ${source} parts REGEX "include [\"<].*(_list|howmany_parts)[.]h[\">]" LIMIT_COUNT 1)
    if(parts)
      continue()
    endif()
    file(STRINGS ${source} cli REGEX "include <CLI/CLI.hpp>" LIMIT_COUNT 1)
    if(cli)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP cli)
      continue()
    endif()
    cmake_path(GET source PARENT_PATH here)
    if(NOT here STREQUAL folder OR count EQUAL size)
      math(EXPR batch "${batch} + 1")
      set(folder "${here}")
      set(count 0)
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${batch})
    math(EXPR count "${count} + 1")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
if(HM_FAST_BUILD)
  # One file may use types of anonymous namespaces as members, which GCC reports as if they came
  # from a header.
  target_compile_options(hm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>")
  # core uses OpenMP, and GCC accepts precompiled headers only with the same OpenMP flags.
  target_compile_options(hm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${OpenMP_CXX_FLAGS}>")
  set(hm_common <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <filesystem> <fstream> <functional>
    <iostream> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string> <thread> <tuple>
    <unordered_map> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)
  hm_precompiled(hm_core_headers LIBS fmt::fmt HEADERS ${hm_common})
  hm_precompiled(hm_report_headers FRONT LIBS fmt::fmt nlohmann_json::nlohmann_json HEADERS ${hm_common}
    <nlohmann/json.hpp>)
  if(NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  hm_precompiled(hm_bench_headers LIBS fmt::fmt benchmark::benchmark nlohmann_json::nlohmann_json
    HEADERS ${hm_common} <benchmark/benchmark.h> <nlohmann/json.hpp>)
  hm_precompiled(hm_test_headers FRONT LIBS fmt::fmt GTest::gmock nlohmann_json::nlohmann_json
    HEADERS ${hm_common} <nlohmann/json.hpp> <gmock/gmock.h> <gtest/gtest.h>)
endif()
