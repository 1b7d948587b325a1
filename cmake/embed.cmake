# SPDX-License-Identifier: Apache-2.0
# hm_embed(FILE CONSTANT): generates the header embedded/<path of FILE>.h, which defines the text of
# FILE as howmany::embedded::CONSTANT. FILE is relative to the project's root. A change of FILE
# configures again.
function(hm_embed file constant)
  file(READ ${PROJECT_SOURCE_DIR}/${file} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/embedded/${file}.h CONTENT
"// Generated from @file@.
#pragma once

namespace howmany::embedded {
inline constexpr const char* @constant@ = R\"~~~(@text@)~~~\";
}
" @ONLY)
endfunction()
