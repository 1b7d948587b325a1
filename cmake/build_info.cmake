# SPDX-License-Identifier: Apache-2.0
# Generates <build_info.h> at configure time (compiler, flags, version of every optional part) and
# <commit.h> at build time. Include <commit.h> in only one small source per program or library,
# because every commit recompiles it. That target must depend on howmany_commit.

# hm_header_version(variable file prefix): sets the version from the macros prefix_MAJOR, _MINOR and
# _PATCH (or _PATCHLEVEL), or "built in" if the file is missing.
function(hm_header_version variable file prefix)
  set(${variable} "built in" PARENT_SCOPE)
  if(NOT EXISTS ${file})
    return()
  endif()
  file(STRINGS ${file} lines REGEX "define ${prefix}_(MAJOR|MINOR|PATCH|PATCHLEVEL) +[0-9]+")
  set(numbers)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE ".* ([0-9]+) *$" "\\1" number "${line}")
    list(APPEND numbers "${number}")
  endforeach()
  list(JOIN numbers "." version)
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()

string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}" hm_cxx_flags)
foreach(part onednn gloo mpi nccl cuda cudnn cupti)
  set(hm_${part}_version "not built in")
endforeach()
if(HM_HAVE_ONEDNN)
  hm_header_version(hm_onednn_version ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h DNNL_VERSION)
endif()
if(HM_HAVE_GLOO)
  set(hm_gloo_version "${Gloo_VERSION}")
endif()
if(HM_HAVE_MPI)
  set(hm_mpi_version "${MPI_CXX_VERSION}")
endif()
if(HM_HAVE_NCCL)
  hm_header_version(hm_nccl_version ${NCCL_INCLUDE_DIR}/nccl.h NCCL)
endif()
if(HM_HAVE_CUDA)
  set(hm_cuda_version "${CUDAToolkit_VERSION}")
endif()
if(HM_HAVE_CUDNN)
  hm_header_version(hm_cudnn_version ${CUDNN_INCLUDE_DIR}/cudnn_version.h CUDNN)
endif()
if(HM_HAVE_CUPTI)
  set(hm_cupti_version "${CUDAToolkit_VERSION}")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/build_info.h.in ${PROJECT_BINARY_DIR}/generated/build_info.h @ONLY)
add_custom_target(howmany_commit BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/commit.h
  COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D OUT=${PROJECT_BINARY_DIR}/generated/commit.h
    -P ${CMAKE_CURRENT_LIST_DIR}/commit.cmake)
