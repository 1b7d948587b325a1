// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/base/text/escape.h"
#include "reports/regression/text.h"
#include "reports/regression/writer.h"

namespace howmany::reports {
namespace {

std::string escaped_xml(const std::string& text) { return escaped(text, size_t{1} << 30); }

std::string outcome(const Row& row) {
  const std::string text = escaped_xml(sentence(row));
  switch (row.verdict) {
    case Verdict::kSlower:
      return fmt::format("<failure type=\"regression\" message=\"{}\"/>", text);
    case Verdict::kFailed:
      return fmt::format("<error type=\"failed\" message=\"{}\"/>", text);
    case Verdict::kSame:
    case Verdict::kFaster:
      return "";
    default:
      return fmt::format("<skipped message=\"{}: {}\"/>", name_of(row.verdict), text);
  }
}

std::string test_case(const Row& row) {
  const double seconds = row.kind.unit == "s" ? row.candidate.value_or(0) : 0;
  return fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.9f}\">{}</testcase>\n",
                     escaped_xml(row.metric), escaped_xml(row.benchmark), seconds, outcome(row));
}

}  // namespace

std::string as_junit(const Comparison& c) {
  const int64_t skipped = c.count(Verdict::kInconclusive) + c.count(Verdict::kSkipped) +
                          c.count(Verdict::kMissing) + c.count(Verdict::kNew);
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", c.rows.size(),
                  c.count(Verdict::kSlower), c.count(Verdict::kFailed), skipped);
  std::string xml = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n"
      "  <testsuite name=\"howmany compare\" {}>\n    <properties>\n",
      counts, counts);
  for (const auto& [name, value] : {std::pair<std::string, std::string>{"base", c.base},
                                    {"candidate", c.candidate},
                                    {"method", method(c)}}) {
    xml += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", name, escaped_xml(value));
  }
  xml += "    </properties>\n";
  for (const Row& row : c.rows) xml += test_case(row);
  return xml + "  </testsuite>\n</testsuites>\n";
}

}  // namespace howmany::reports
