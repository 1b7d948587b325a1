# The flags every target shares, and the three helpers that declare one.

add_library(hm_flags INTERFACE)
target_include_directories(hm_flags INTERFACE ${CMAKE_BINARY_DIR}/generated)
set(hm_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual -fno-math-errno)
target_compile_options(hm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${hm_warnings}>")  # nvcc's own text has many
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(hm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>")  # GCC bug 105651: false alarms on std::string
endif()
target_link_options(hm_flags INTERFACE -Wl,--build-id)  # ranks compare it: see parallel/program_id.h
if(HM_WERROR)
  target_compile_options(hm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Werror>"
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
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

# hm_library(core source...) -> howmany_core, alias howmany::core
function(hm_library name)
  add_library(howmany_${name} STATIC ${ARGN})
  add_library(howmany::${name} ALIAS howmany_${name})
  target_include_directories(howmany_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(howmany_${name} PRIVATE hm_flags)
endfunction()

# hm_program(name LIBS lib... SOURCES source...) -> bin/name
function(hm_program name)
  cmake_parse_arguments(P "" "" "LIBS;SOURCES" ${ARGN})
  add_executable(${name} ${P_SOURCES})
  target_link_libraries(${name} PRIVATE hm_flags ${P_LIBS})
endfunction()

# hm_tests(folder LIBS lib...): every tests/<folder>/<x>_test.cpp becomes ctest <folder>.<x>.
# A first line `// labels: process slow` labels it (`threads`: the thread sanitizer watches it, as it does with all of
# parallel and benches); `// timeout: 120` raises its limit (seconds).
function(hm_tests folder)
  cmake_parse_arguments(T "" "" "LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.cpp)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM stem)
    string(REGEX REPLACE "_test$" "" unit ${stem})
    hm_program(${folder}_${stem} SOURCES ${source} LIBS ${T_LIBS} GTest::gmock GTest::gtest_main)
    hm_front(${folder}_${stem})
    hm_reuse(hm_test_headers ${folder}_${stem})
    add_test(NAME ${folder}.${unit} COMMAND ${folder}_${stem})
    hm_test_properties(${folder} ${folder}.${unit} ${source})
    get_test_property(${folder}.${unit} LABELS labels)
    if(labels MATCHES "threads|parallel|benches" AND NOT labels MATCHES process)  # as the preset selects
      add_dependencies(threaded_tests ${folder}_${stem})
    endif()
  endforeach()
endfunction()

# hm_script_tests(folder): every tests/<folder>/<x>_test.py, which runs the built programs (see
# tests/support/programs.py), becomes ctest <folder>.<x>; the same first lines after `#`.
function(hm_script_tests folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.py)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM stem)
    string(REGEX REPLACE "_test$" "" unit ${stem})
    add_test(NAME ${folder}.${unit} COMMAND ${HM_PYTHON} ${source})
    hm_test_properties(${folder} ${folder}.${unit} ${source})
    set_tests_properties(${folder}.${unit} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
endfunction()

function(hm_test_properties folder test source)
  file(STRINGS ${source} head LIMIT_COUNT 3)
  set(labels ${folder})
  set(timeout 180)
  if(head MATCHES "labels: ([a-z ]+)")
    string(REPLACE " " ";" extra "${CMAKE_MATCH_1}")
    list(APPEND labels ${extra})
  endif()
  if(head MATCHES "timeout: ([0-9]+)")
    set(timeout ${CMAKE_MATCH_1})
  endif()
  # The thread sanitizer cannot see how libgomp's threads wait for each other and would report every
  # shared loop as a race: there, teams have one thread and our own threads are what is watched.
  set(omp)
  if(HM_SANITIZE STREQUAL "thread")
    set(omp "OMP_NUM_THREADS=1;")
  endif()
  set_tests_properties(${test} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} COST ${timeout}  # the longest first
    ENVIRONMENT "${omp}HOWMANY_BIN=${CMAKE_BINARY_DIR}/bin;HOWMANY_SOURCE=${PROJECT_SOURCE_DIR};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/support")
endfunction()

# hm_fuzz(folder unit ITERATIONS n LIBS lib...): tests/fuzz/<unit>_fuzz.cpp (see
# tests/support/fuzz_driver.h) becomes ctest <folder>.<unit>_fuzz, a bounded run of fixed inputs;
# -DHM_LIBFUZZER=ON with clang++ builds the open-ended libFuzzer program instead.
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
  set_tests_properties(${folder}.${unit}_fuzz PROPERTIES LABELS "${folder};fuzz" TIMEOUT 120)
endfunction()
