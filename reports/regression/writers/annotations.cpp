// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/base/text/table.h"
#include "reports/regression/text.h"
#include "reports/regression/writer.h"

namespace howmany::reports {
namespace {

constexpr int64_t kMaxAnnotations = 8;  // GitHub shows ten per kind and step

std::string escaped_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '%') {
      out += "%25";
    } else if (c == '\r') {
      out += "%0D";
    } else if (c == '\n') {
      out += "%0A";
    } else {
      out += c;
    }
  }
  return without_controls(out);
}

std::string of(const Comparison& c, Verdict verdict, const char* level, const char* title) {
  std::string text;
  int64_t shown = 0;
  for (const Row& row : c.rows) {
    if (row.verdict != verdict || ++shown > kMaxAnnotations) continue;
    text += fmt::format("::{} title={}::{}\n", level, title, escaped_line(sentence(row)));
  }
  if (shown > kMaxAnnotations)
    text += fmt::format("::{} title={}::and {} more\n", level, title, shown - kMaxAnnotations);
  return text;
}

}  // namespace

std::string as_annotations(const Comparison& c) {
  const bool bad = exit_code(c, false) != 0;
  const bool doubtful = c.count(Verdict::kInconclusive) > 0;
  return fmt::format("::{} title=howmany::{}\n",
                     bad        ? "error"
                     : doubtful ? "warning"
                                : "notice",
                     escaped_line(headline(c))) +
         of(c, Verdict::kSlower, "error", "Slower") + of(c, Verdict::kFailed, "error", "Failed");
}

}  // namespace howmany::reports
