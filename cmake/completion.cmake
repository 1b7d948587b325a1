# SPDX-License-Identifier: Apache-2.0
# Completion scripts, which the program itself writes (`howmany completion`).
if(NOT DEFINED HM_SHARE_DIR)
  set(HM_SHARE_DIR share)
endif()

set(hm_completion_files)
# hm_written_by_howmany(file folder argument...): writes the output of `howmany argument...` to
# share/folder/file.
function(hm_written_by_howmany file folder)
  set(path ${PROJECT_BINARY_DIR}/generated/${folder}/${file})
  cmake_path(GET path PARENT_PATH parent)
  file(MAKE_DIRECTORY ${parent})
  add_custom_command(OUTPUT ${path} VERBATIM
    COMMAND ${CMAKE_COMMAND} -E env --unset=HOWMANY_BENCH_DIR $<TARGET_FILE:howmany> ${ARGN} > ${path}
    DEPENDS howmany
    COMMENT "Writing ${folder}/${file}")
  install(FILES ${path} DESTINATION ${HM_SHARE_DIR}/${folder})
  set(hm_completion_files ${hm_completion_files} ${path} PARENT_SCOPE)
endfunction()
hm_written_by_howmany(howmany bash-completion/completions completion bash)
hm_written_by_howmany(_howmany zsh/site-functions completion zsh)
hm_written_by_howmany(howmany.fish fish/vendor_completions.d completion fish)
add_custom_target(completion_files ALL DEPENDS ${hm_completion_files})
add_dependencies(packed completion_files)
