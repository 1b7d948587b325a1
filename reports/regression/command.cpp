// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <future>

#include "core/base/schema/exit_codes.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/regression/writer.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

// Parses "junit=report.xml" into the writer and the path.
std::pair<const Writer*, std::string> output(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    throw InputError(fmt::format("--write: \"{}\" is not FORMAT=FILE", text));
  }
  return {&find_writer(text.substr(0, equals)), text.substr(equals + 1)};
}

}  // namespace

double parse_share(const std::string& option, const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  const std::string rest = end;
  if (rest == "%") value /= 100;
  const bool ends_well = end != text.c_str() && (rest.empty() || rest == "%");
  if (!ends_well || !std::isfinite(value) || value < 0 || value >= 1) {
    throw InputError(
        fmt::format("{}: \"{}\" is not a share from 0 to 1; write 2% or 0.02", option, text));
  }
  return value;
}

JudgeOptions judge_options(const JudgeArguments& a) {
  JudgeOptions options;
  options.alpha = a.alpha;
  if (a.min_effect) options.min_effect = parse_share("--min-effect", *a.min_effect);
  if (a.same_within) options.same_within = parse_share("--same-within", *a.same_within);
  options.metrics = a.metrics;
  for (const std::string& direction : a.directions) add_metric_kind(options.kinds, direction);
  return options;
}

void check_outputs(const JudgeArguments& arguments) {
  find_writer(arguments.format);
  for (const std::string& text : arguments.write) {
    const std::string path = output(text).second;
    const fs::path folder = fs::path(path).parent_path();
    if (!folder.empty() && !fs::is_directory(folder)) {
      throw InputError(fmt::format("--write: the folder of {} does not exist", path));
    }
  }
}

int print_result(const Comparison& comparison, const JudgeArguments& arguments) {
  for (const std::string& text : arguments.write) {
    const auto [writer, path] = output(text);
    write_text(path, writer->write(comparison));
  }
  const Writer& writer = find_writer(arguments.json ? "json" : arguments.format);
  const std::string text = writer.write(comparison);
  std::fwrite(text.data(), 1, text.size(), stdout);
  const int64_t unclear = comparison.count(Verdict::kInconclusive);
  const int code = exit_code(comparison, arguments.strict);
  if (code == 0 && unclear > 0) {
    fmt::print(stderr,
               "warning: {} of {} measurements are inconclusive (--strict makes that exit 5)\n",
               unclear, comparison.judged());
  }
  return code;
}

int run_compare(const CompareArguments& arguments) {
  check_outputs(arguments.judge);
  const JudgeOptions options = judge_options(arguments.judge);
  auto other = std::async(std::launch::async, [&] { return read_suite(arguments.candidate); });
  const Suite base = read_suite(arguments.base), candidate = other.get();
  refuse_unknown_metrics(base, candidate, options);
  const Comparison comparison = judge(base, candidate, options);
  if (comparison.likeness.level == Likeness::Level::kNot && !arguments.judge.force) {
    fmt::print(stderr, "howmany: not comparable, {}. Use --force to compare them.\n",
               refusal(comparison.likeness));
    return exit_code::kNotComparable;
  }
  return print_result(comparison, arguments.judge);
}

}  // namespace howmany::reports
