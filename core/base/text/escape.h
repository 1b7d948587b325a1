// SPDX-License-Identifier: Apache-2.0
// Escapes untrusted text for HTML and SVG.
#pragma once

#include <string>

namespace howmany {

// Escapes text for HTML content and quoted attributes. '?' replaces control characters and invalid
// UTF-8. Truncates after `most` bytes and appends "...".
std::string escaped(const std::string& text, size_t most = 600);

}  // namespace howmany
