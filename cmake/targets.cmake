# SPDX-License-Identifier: Apache-2.0
# The flags of all targets, and the helpers that declare targets.

option(HM_BUNDLE_FOR_CUDA12 "Install only the programs that howmany starts, as cuda12/bin of another build's bundle" OFF)
set(HM_PROGRAM_DIR bin)  # in an installation
if(HM_BUNDLE_FOR_CUDA12)
  set(HM_PROGRAM_DIR cuda12/bin)
endif()

add_library(hm_flags INTERFACE)
target_include_directories(hm_flags INTERFACE ${PROJECT_BINARY_DIR}/generated)
set(hm_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual -fno-math-errno)
# nvcc's generated code has many warnings.
target_compile_options(hm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${hm_warnings}>")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651 and related bugs: false warnings about std::string.
  target_compile_options(hm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overread;-Wno-stringop-overflow>")
endif()
target_link_options(hm_flags INTERFACE -Wl,--build-id)  # ranks compare it: see parallel/launch/program_id.h
if(HM_WERROR)
  target_compile_options(hm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Werror>"
    "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:SHELL:-Werror all-warnings>")
endif()
if(HM_LIBFUZZER)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "HM_LIBFUZZER needs clang++ (-DCMAKE_CXX_COMPILER=clang++)")
  endif()
  target_compile_options(hm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>")
  target_link_options(hm_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(HM_SANITIZE)
  target_compile_options(hm_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${HM_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  target_link_options(hm_flags INTERFACE "-fsanitize=${HM_SANITIZE}")
  target_compile_definitions(hm_flags INTERFACE HM_SANITIZED=1)
endif()

include(${CMAKE_CURRENT_LIST_DIR}/compile_time.cmake)

# hm_library(core source...): builds howmany_core, alias howmany::core. cmake/install.cmake installs
# it.
function(hm_library name)
  add_library(howmany_${name} STATIC ${ARGN})
  add_library(howmany::${name} ALIAS howmany_${name})
  target_include_directories(howmany_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${HM_INCLUDE_DIR}>)
  target_compile_features(howmany_${name} PUBLIC cxx_std_20)
  target_link_libraries(howmany_${name} PRIVATE $<BUILD_INTERFACE:hm_flags>)
endfunction()

# hm_program(name LIBS lib... SOURCES source...): builds bin/name.
function(hm_program name)
  cmake_parse_arguments(P "" "" "LIBS;SOURCES" ${ARGN})
  add_executable(${name} ${P_SOURCES})
  target_link_libraries(${name} PRIVATE hm_flags ${P_LIBS})
endfunction()

# hm_tests(folder LIBS lib... [INCLUDES dir...]): builds one program, <folder>_tests, from the
# *_test.cpp in tests/<folder> or tests/gpu/<folder>.
#   * ctest runs it once per source as <folder>.<room>.<x>, or <folder>.<room> if <x> is the room's
#     name.
#   * A source with its own main() becomes its own program, <folder>_<x>_test.
#   * A first line `// labels: process slow` sets labels:
#       process   starts processes; not checked by the thread sanitizer
#       alone     no other test runs at the same time
#       slow      takes minutes; not run with sanitizers
#       nightly   runs only if HOWMANY_NIGHTLY is set; so do the cases marked so within other tests
#       threads   checked by the thread sanitizer, as is all of parallel and benches
#       in_turns  not checked by it: only one of the threads runs at a time, as in
#                 benches.common.computed_step, which it checks
#       cpu_only  can differ without CUDA and MPI
#       quick     part of scripts/test without arguments
#     Unit tests that are none of slow, alone and nightly get `cpu_only` in core and benches, and `quick` in core,
#     parallel and reports. The address sanitizer checks all of them, but no scripts.
#     Other labels name what the test needs.
#   * A line `// timeout: 120` raises the limit (seconds).
#   * The objects are linked again over the fake GPUs: see hm_fake_gpu_program.
if(PROJECT_IS_TOP_LEVEL)
  add_library(hm_test_main OBJECT ${PROJECT_SOURCE_DIR}/tests/support/test_main.cpp)
  target_link_libraries(hm_test_main PRIVATE hm_flags fmt::fmt GTest::gmock)
  hm_front(hm_test_main)
  hm_reuse(hm_test_headers hm_test_main)
endif()

function(hm_tests folder)
  cmake_parse_arguments(T "" "" "LIBS;INCLUDES" ${ARGN})
  hm_test_objects(${folder} ${ARGN})
  hm_program(${folder}_tests SOURCES $<TARGET_OBJECTS:${folder}_test_objects> $<TARGET_OBJECTS:hm_test_main>
    LIBS ${T_LIBS} GTest::gmock)
  get_target_property(sources ${folder}_test_objects SOURCES)
  foreach(source IN LISTS sources)
    hm_test_unit(${folder} ${source} unit)
    hm_source_test(${folder} ${unit} ${folder}_tests ${source})
  endforeach()
endfunction()

# Builds only the objects, for folders that are linked only over the fake GPUs.
function(hm_test_objects folder)
  cmake_parse_arguments(T "" "" "LIBS;INCLUDES" ${ARGN})
  hm_test_folder(${folder} root)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/*_test.cpp)
  foreach(source IN LISTS sources)
    file(STRINGS ${source} main REGEX "^int main\\(" LIMIT_COUNT 1)
    if(main)
      list(REMOVE_ITEM sources ${source})
      hm_single_test(${folder} ${source} ${T_LIBS})
    endif()
  endforeach()
  add_library(${folder}_test_objects OBJECT ${sources})
  target_link_libraries(${folder}_test_objects PRIVATE hm_flags ${T_LIBS} GTest::gmock)
  target_include_directories(${folder}_test_objects SYSTEM PRIVATE ${T_INCLUDES})
  hm_front(${folder}_test_objects)
  hm_reuse(hm_test_headers ${folder}_test_objects)
  hm_unity(${folder}_test_objects 8)
endfunction()

function(hm_test_folder folder result)
  set(root ${CMAKE_CURRENT_SOURCE_DIR}/gpu/${folder})
  if(NOT EXISTS ${root})
    set(root ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  endif()
  set(${result} ${root} PARENT_SCOPE)
endfunction()

# tests/core/tensor/shape_test.cpp -> tensor.shape; tests/core/tensor/tensor_test.cpp -> tensor
function(hm_test_unit folder source result)
  hm_test_folder(${folder} root)
  file(RELATIVE_PATH unit ${root} ${source})
  string(REGEX REPLACE "_test[.][a-z]+$" "" unit ${unit})
  cmake_path(GET unit FILENAME leaf)
  cmake_path(GET unit PARENT_PATH room)
  cmake_path(GET room FILENAME last)
  if(leaf STREQUAL last)
    set(unit ${room})
  endif()
  string(REPLACE "/" "." unit ${unit})
  set(${result} ${unit} PARENT_SCOPE)
endfunction()

# hm_source_test(folder unit program source argument...): runs the tests of that source as ctest
# <folder>.<unit>.
function(hm_source_test folder unit program source)
  set(test ${folder}.${unit})
  hm_test_folder(${folder} root)
  file(RELATIVE_PATH file ${root} ${source})
  add_test(NAME ${test} COMMAND ${program} --source=${file} ${ARGN})
  hm_test_properties(${folder} ${test} ${source})
  set_property(TEST ${test} APPEND PROPERTY LABELS ${folder}_unit)
  hm_label_unit(${folder} ${test} ${program})
endfunction()

function(hm_single_test folder source)
  hm_test_unit(${folder} ${source} unit)
  hm_program(${folder}_${unit}_test SOURCES ${source} LIBS ${ARGN} GTest::gmock)
  hm_front(${folder}_${unit}_test)
  hm_reuse(hm_test_headers ${folder}_${unit}_test)
  add_test(NAME ${folder}.${unit} COMMAND ${folder}_${unit}_test)
  hm_test_properties(${folder} ${folder}.${unit} ${source})
  hm_label_unit(${folder} ${folder}.${unit} ${folder}_${unit}_test)
endfunction()

# Adds labels, and the program to the targets with the tests of .ci/run's parts.
function(hm_label_unit folder test program)
  get_test_property(${test} LABELS labels)
  if(labels MATCHES "_unit" AND NOT labels MATCHES "slow|alone|nightly")
    add_dependencies(unit_tests ${program})
    if(folder MATCHES "^(core|benches)$")
      set_property(TEST ${test} APPEND PROPERTY LABELS cpu_only)
    endif()
    if(program MATCHES "^(core|parallel|reports)_tests$" AND NOT labels MATCHES process)
      set_property(TEST ${test} APPEND PROPERTY LABELS quick)
      add_dependencies(quick_tests ${program})
    endif()
  endif()
  # Must match the preset's selection.
  if(labels MATCHES "threads|parallel|benches" AND NOT labels MATCHES process)
    add_dependencies(threaded_tests ${program})
  endif()
endfunction()

# hm_script_tests(folder): adds every *_test.py of the same folders, which runs the built programs
# (see tests/support/programs.py), as a ctest with a name of that form. The first lines are the
# same, after `#`.
function(hm_script_tests folder)
  hm_test_folder(${folder} root)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/*_test.py)
  foreach(source IN LISTS sources)
    hm_test_unit(${folder} ${source} unit)
    add_test(NAME ${folder}.${unit} COMMAND ${HM_PYTHON} ${source})
    hm_test_properties(${folder} ${folder}.${unit} ${source})
    set_tests_properties(${folder}.${unit} PROPERTIES SKIP_RETURN_CODE 77)
    get_test_property(${folder}.${unit} LABELS labels)
    if("quick" IN_LIST labels)
      add_dependencies(quick_tests programs)
    endif()
  endforeach()
endfunction()

function(hm_test_properties folder test source)
  file(STRINGS ${source} head LIMIT_COUNT 4)
  set(labels ${folder})
  set(timeout 180)
  if(head MATCHES "labels: ([a-z_ ]+)")
    string(REPLACE " " ";" extra "${CMAKE_MATCH_1}")
    list(APPEND labels ${extra})
  endif()
  if(head MATCHES "timeout: ([0-9]+)")
    set(timeout ${CMAKE_MATCH_1})
  endif()
  # The thread sanitizer does not see the synchronization of libgomp's threads and would report
  # every shared loop as a race. So OpenMP teams have one thread there, and only our own threads are
  # checked.
  # The runtime of GCC 13 and older takes some blocks of dynamic TLS for those of a glibc before 2.25,
  # and the leak check then reads a wrong address ("Tracer caught signal 11", google/sanitizers#1322).
  set(sanitizer)
  if(HM_SANITIZE STREQUAL "thread")
    set(sanitizer "HOWMANY_TEST_PAIRS=1;OMP_NUM_THREADS=1;")
  elseif(HM_SANITIZE MATCHES "address")
    set(sanitizer "HOWMANY_TEST_PAIRS=1;ASAN_OPTIONS=intercept_tls_get_addr=0;")
  endif()
  if("alone" IN_LIST labels) # it uses all cores: other tests would take many times as long
    set_tests_properties(${test} PROPERTIES RUN_SERIAL TRUE)
  endif()
  # Starts the longest first.
  set_tests_properties(${test} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} COST ${timeout}
    ENVIRONMENT "${sanitizer}HOWMANY_BIN=${CMAKE_BINARY_DIR}/bin;HOWMANY_SOURCE=${PROJECT_SOURCE_DIR};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/support:${PROJECT_SOURCE_DIR}/tests/fakes")
endfunction()

# hm_fuzz(folder unit ITERATIONS n LIBS lib...): builds tests/fuzz/<unit>_fuzz.cpp (see
# tests/support/fuzz_driver.h) and runs it as ctest <folder>.<unit>_fuzz, a bounded run of fixed
# inputs. With -DHM_LIBFUZZER=ON and clang++ it builds the open-ended libFuzzer program instead.
function(hm_fuzz folder unit)
  cmake_parse_arguments(F "" "ITERATIONS" "LIBS" ${ARGN})
  hm_program(${unit}_fuzz SOURCES fuzz/${unit}_fuzz.cpp LIBS ${F_LIBS})
  hm_front(${unit}_fuzz)
  if(HM_LIBFUZZER)
    target_compile_definitions(${unit}_fuzz PRIVATE HM_LIBFUZZER=1)
    target_link_options(${unit}_fuzz PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  add_test(NAME ${folder}.${unit}_fuzz COMMAND ${unit}_fuzz ${F_ITERATIONS})
  set_tests_properties(${folder}.${unit}_fuzz PROPERTIES LABELS "${folder};fuzz" TIMEOUT 1200 COST 120)
  add_dependencies(unit_tests ${unit}_fuzz)
endfunction()
