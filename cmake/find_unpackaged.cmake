# SPDX-License-Identifier: Apache-2.0
# Finds hwloc, libwebp, libarchive and oneDNN, because their own CMake packages are missing or unsuitable.
# howmany's build and the installed package (howmany-config.cmake) share this file.

find_package(PkgConfig REQUIRED)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(webp REQUIRED IMPORTED_TARGET libwebp)
# The static library links only the tar reader. The shared one also loads ICU, libxml2 and six
# others (36 MB).
find_library(HM_LIBARCHIVE NAMES libarchive.a archive)
set(LibArchive_LIBRARY ${HM_LIBARCHIVE})
find_package(LibArchive REQUIRED)

# Debian's oneDNN config requires OpenCL's development files, which are not used here.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
endif()
if(TARGET DNNL::dnnl)
  set(dnnl_FOUND TRUE)
endif()
