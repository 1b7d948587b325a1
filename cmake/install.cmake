# SPDX-License-Identifier: Apache-2.0
# Installs the libraries for other projects: headers, static libraries and the CMake package
# (find_package(howmany)). The component is `development`. An installation without --component, and
# so scripts/bundle, leaves it out.
#
#   cmake --install build/release --component development --prefix DIR

include(CMakePackageConfigHelpers)
set(hm_package_dir ${HM_LIBRARY_DIR}/cmake/howmany)
foreach(library IN ITEMS base core parallel)
  set_target_properties(howmany_${library} PROPERTIES EXPORT_NAME ${library})
endforeach()
# Ranks compare the build ID of the program: see parallel/launch/program_id.h.
target_link_options(howmany_parallel INTERFACE -Wl,--build-id)
install(TARGETS howmany_base howmany_core howmany_parallel EXPORT howmany_targets
  ARCHIVE DESTINATION ${HM_LIBRARY_DIR} COMPONENT development EXCLUDE_FROM_ALL)
install(EXPORT howmany_targets NAMESPACE howmany:: FILE howmany-targets.cmake
  DESTINATION ${hm_package_dir} COMPONENT development EXCLUDE_FROM_ALL)
# Not installed: private headers, which include those of an optional library.
foreach(room IN ITEMS core parallel)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${room} DESTINATION ${HM_INCLUDE_DIR}
    COMPONENT development EXCLUDE_FROM_ALL FILES_MATCHING PATTERN *.h PATTERN *.inc
    PATTERN backends/cuda EXCLUDE PATTERN backends/onednn EXCLUDE
    PATTERN engines/*.h EXCLUDE PATTERN *_list.h EXCLUDE PATTERN cupti_records.h EXCLUDE)
endforeach()

configure_package_config_file(cmake/howmany-config.cmake.in
  ${PROJECT_BINARY_DIR}/generated/howmany-config.cmake INSTALL_DESTINATION ${hm_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/howmany-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/howmany-config.cmake
  ${PROJECT_BINARY_DIR}/generated/howmany-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/find_unpackaged.cmake
  DESTINATION ${hm_package_dir} COMPONENT development EXCLUDE_FROM_ALL)
