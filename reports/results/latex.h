// SPDX-License-Identifier: Apache-2.0
// Writes a Document as LaTeX that needs no package but graphicx. A plot is its PDF, once somebody
// has made that from the SVG. The function is pure.
#pragma once

#include <string>

#include "reports/results/document.h"

namespace howmany::reports {

// Returns a part to paste between \begin{document} and \end{document}.
std::string to_latex(const Document& document);

// Returns text that LaTeX shows as it is. '?' replaces characters that it has no glyph for.
std::string escaped_latex(const std::string& text);

}  // namespace howmany::reports
