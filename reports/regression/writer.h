// SPDX-License-Identifier: Apache-2.0
// Writes a comparison for people, CI systems and trackers. To add a writer, define write_NAME in a
// file of writers/ and add a line here. Values only; safe from any thread.
//
//   std::string xml = find_writer("junit").write(comparison);
#pragma once

#include <span>
#include <string>

#include "reports/regression/judge.h"

// X(name, purpose)
#define HM_WRITERS(X)                                                        \
  X(text, "a table for a terminal")                                          \
  X(markdown, "a summary for a pull request or a job summary, below 64 KiB") \
  X(json, "everything, schema howmany.comparison/1")                         \
  X(junit, "JUnit XML: a test case per measurement")                         \
  X(annotations, "GitHub workflow commands, the worst first")                \
  X(sarif, "SARIF 2.1.0 of the regressions")                                 \
  X(history, "JSON Lines for howmany history: ratios to the base, a pinned anchor")

namespace howmany::reports {

struct Writer {
  const char* name;
  const char* what;
  std::string (*write)(const Comparison&);
};

std::span<const Writer> writers();
// Throws InputError that suggests the nearest name.
const Writer& find_writer(const std::string& name);

#define HM_DECLARE_WRITER(name, what) std::string as_##name(const Comparison& comparison);
HM_WRITERS(HM_DECLARE_WRITER)
#undef HM_DECLARE_WRITER

}  // namespace howmany::reports
