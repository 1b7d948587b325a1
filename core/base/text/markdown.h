// SPDX-License-Identifier: Apache-2.0
// Text within GitHub's Markdown. The function is pure.
#pragma once

#include <string>

namespace howmany {

// Returns without_controls(text), so that it is shown as it is: without markup, mentions and links.
// '?' replaces invisible characters and those that change the direction of text.
std::string escaped_markdown(const std::string& text);

}  // namespace howmany
