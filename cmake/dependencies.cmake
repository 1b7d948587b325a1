# All dependencies come from the distribution's packages (scripts/packages.txt) or the CUDA Toolkit.
# Nothing is downloaded.
# Required: fmt, nlohmann-json, CLI11, hwloc, libjpeg-turbo, libpng, libarchive, Google Benchmark,
# GoogleTest, OpenMP.
# Optional parts add or omit a file: oneDNN, Gloo, MPI, NCCL, NVTX, CUDA, cuDNN.

find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(benchmark REQUIRED)
find_package(GTest REQUIRED)
find_package(PNG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
find_package(JPEG REQUIRED)
# The static library links only the tar reader. The shared one also loads ICU, libxml2 and six
# others (36 MB).
find_library(HM_LIBARCHIVE NAMES libarchive.a archive)
set(LibArchive_LIBRARY ${HM_LIBARCHIVE})
find_package(LibArchive REQUIRED)

# Debian's oneDNN config requires OpenCL's development files, which are not used here.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
  set(dnnl_FOUND TRUE)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
endif()
find_package(Gloo QUIET CONFIG)
set(MPI_CXX_SKIP_MPICXX TRUE)  # the C interface only
option(HM_MPI "Build the mpi backend if MPI is found" ON)
if(HM_MPI)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
set(MPI_VERSION ${MPI_CXX_VERSION})
option(HM_CUDA "Build the GPU kernels and NCCL if the CUDA Toolkit is found" ON)
if(HM_CUDA)
  find_package(CUDAToolkit 12 QUIET)
endif()
if(CUDAToolkit_FOUND)
  find_path(NVTX_INCLUDE_DIR nvtx3/nvToolsExt.h PATHS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
  if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
    set(NCCL_FOUND TRUE)
  endif()
  find_path(CUBLASLT_INCLUDE_DIR cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  # In version 9 and later.
  find_path(CUDNN_INCLUDE_DIR cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
  # The library is opened at run time, if the loader finds one.
  foreach(what CUDNN_INCLUDE_DIR CUDNN_LIBRARY)
    if(NOT ${what})
      set(${what} "")
    endif()
  endforeach()
  find_path(NVJPEG_INCLUDE_DIR nvjpeg.h HINTS ${CUDAToolkit_INCLUDE_DIRS})  # only for a test
  find_path(CUPTI_INCLUDE_DIR cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
    ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include)
  find_library(CUPTI_LIBRARY cupti HINTS ${CUDAToolkit_LIBRARY_DIR}
    ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/lib64)
  find_library(CUBLASLT_LIBRARY cublasLt HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
endif()
# Kernels are compiled for the A100, H100 and H200. Newer GPUs use the PTX of the last.
if(CUDAToolkit_FOUND AND CUBLASLT_INCLUDE_DIR AND CUBLASLT_LIBRARY AND CUDAToolkit_NVCC_EXECUTABLE)
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc supports it
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    # An additional -isystem /usr/include would come before the headers that include_next it.
    list(APPEND CMAKE_CUDA_IMPLICIT_INCLUDE_DIRECTORIES ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
    set(HM_HAVE_CUDA TRUE)
  endif()
endif()

# Values of howmany_parts.h. The layout of CUPTI's records depends on the major version.
if(HM_HAVE_CUDA AND CUPTI_INCLUDE_DIR AND CUPTI_LIBRARY AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 13)
  set(HM_HAVE_CUPTI TRUE)
endif()
if(HM_HAVE_CUDA AND CUDNN_INCLUDE_DIR)
  set(CUDNN_FOUND TRUE)
endif()
set(HM_HAVE_CUDNN ${CUDNN_FOUND})
if(HM_HAVE_CUDNN)  # sources of core/backends/cuda
  set(HM_CUDA_EXCLUDED "/dnn/none.cpp$")
else()
  set(HM_CUDA_EXCLUDED "/dnn/(dnn|api|plan|graphs|attention.*).cpp$")
endif()
if(CUDAToolkit_FOUND AND NVTX_INCLUDE_DIR)
  set(HM_HAVE_NVTX TRUE)
endif()
set(HM_HAVE_ONEDNN ${dnnl_FOUND})
set(HM_HAVE_GLOO ${Gloo_FOUND})
set(HM_HAVE_MPI ${MPI_CXX_FOUND})
if(NCCL_FOUND AND Gloo_FOUND)
  set(HM_HAVE_NCCL TRUE)
endif()

function(hm_print_summary)
  foreach(part dnnl Gloo MPI CUDAToolkit NCCL CUDNN)
    if(${part}_FOUND)
      message(STATUS "howmany: ${part} ${${part}_VERSION}")
    else()
      message(STATUS "howmany: ${part} not found, built without it")
    endif()
  endforeach()
endfunction()
