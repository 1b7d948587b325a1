#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <set>

#include "reports/backend_command.h"
#include "reports/backend_format.h"
#include "reports/format.h"
#include "reports/process.h"
#include "reports/table.h"
#include "reports/transfer_advice.h"

namespace howmany {
namespace {

constexpr size_t kWidth = 100;
constexpr double kBeyondBudget = 120;

struct TransferArguments {
  std::vector<std::string> models;
  std::string min_bytes = "64", max_bytes = "256M";
  std::optional<int64_t> batch;
  double time_budget = 30;
  OutputArguments output;
};

std::vector<std::string> bench_arguments(const TransferArguments& a) {
  std::vector<std::string> argv = {
      "--min-bytes",      std::to_string(parse_bytes("--min-bytes", a.min_bytes)),
      "--max-bytes",      std::to_string(parse_bytes("--max-bytes", a.max_bytes)),
      "--budget-seconds", fmt::format("{:.3f}", 0.7 * a.time_budget)};
  for (const std::string& model : a.models) argv.insert(argv.end(), {"--model", model});
  if (a.batch) argv.insert(argv.end(), {"--batch", std::to_string(*a.batch)});
  return argv;
}

int run_transfer(const TransferArguments& a) {
  refuse_many_copies("transfer", "transfer_bench on each host");
  const std::vector<std::string> arguments = bench_arguments(a);
  const std::string folder = result_folder(a.output.out);
  catch_interrupts();
  if (!a.output.quiet) fmt::print(stderr, "measuring copies, about {:.0f} s\n", a.time_budget);
  const SuiteRun run = run_suite({.program = "transfer_bench",
                                  .folder = folder,
                                  .arguments = arguments,
                                  .timeout_seconds = 3 * a.time_budget + kBeyondBudget,
                                  .verbose = a.output.verbose});
  write_suite(folder, "transfer", {run});
  Summary summary;
  summary.context = run.file.context;
  summary.measurements = measurements_of(run);
  const TransferAdvice advice = advise_transfer(summary.measurements);
  summary.answer["transfer"] = to_json(advice, summary.measurements);
  const nlohmann::json request = {
      {"model", a.models},
      {"min-bytes", a.min_bytes},
      {"max-bytes", a.max_bytes},
      {"batch", a.batch ? nlohmann::json(*a.batch) : nlohmann::json(nullptr)},
      {"time-budget", a.time_budget}};
  const bool color = !a.output.no_color && color_wanted(STDOUT_FILENO);
  return finish(folder, summary, request, {run}, a.output,
                render_transfer(advice, summary.measurements, color));
}

std::string copies_table(const TransferAdvice& advice, bool color) {
  std::vector<Table::Column> columns = {{"size"}};
  std::set<double> sizes;
  for (const CopyCurve& c : advice.copies) {
    columns.push_back({fmt::format("{} thread{}", c.threads, c.threads == 1 ? "" : "s")});
    columns.push_back({"rate"});
    for (const CurvePoint& p : c.curve) sizes.insert(p.bytes);
  }
  Table table(columns);
  for (const double bytes : sizes) {
    std::vector<std::string> row = {format_bytes(bytes)};
    for (const CopyCurve& c : advice.copies) {
      const auto p = std::ranges::find(c.curve, bytes, &CurvePoint::bytes);
      row.push_back(p == c.curve.end() ? "-" : format_seconds(p->seconds));
      row.push_back(p == c.curve.end() ? "-" : format_rate(bytes / p->seconds));
    }
    table.add(row);
  }
  return table.text(color);
}

// Everything that is not a copy by size, one line each, what was skipped too.
std::string others_table(const std::vector<Measurement>& measurements, bool color) {
  constexpr auto kLeft = Table::Align::kLeft;
  Table table({{"what", kLeft}, {"time"}, {"rate"}, {"", kLeft}});
  for (const Measurement& m : measurements) {
    if (m.suite != "transfer" || m.name == "copy" || m.name.starts_with("fidelity/")) continue;
    std::string what = m.name;
    for (const auto& [key, value] : m.parameters)
      what += key == "bytes" ? ", " + format_bytes(std::strtod(value.c_str(), nullptr))
                             : fmt::format(", {} {}", key, value);
    const std::string why = why_skipped(m);
    table.add(
        {what, format_seconds(value_of(m, "median_s")), format_rate(value_of(m, "bytes_per_s")),
         has_failed(m)  ? "failed"
         : !why.empty() ? "skipped: " + why
                        : ""},
        why.empty() ? Table::Style::kPlain : Table::Style::kDim);
  }
  return table.text(color);
}

}  // namespace

std::string render_transfer(const TransferAdvice& advice,
                            const std::vector<Measurement>& measurements, bool color) {
  std::string text = styled(wrapped(advice.because, kWidth, 2), Table::Style::kBold, color) + "\n";
  for (const std::string& note : advice.notes) text += wrapped(note, kWidth, 2) + "\n";
  if (!advice.copies.empty())
    text +=
        "\nCopies of host memory (median of the slowest thread)\n" + copies_table(advice, color);
  return text + "\n" + others_table(measurements, color);
}

void add_transfer_command(CLI::App& app, int& code) {
  auto* sub = app.add_subcommand("transfer", "What moving data costs here, measured");
  const auto a = std::make_shared<TransferArguments>();
  sub->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  sub->add_option("--model", a->models, "Also what one training step of it moves")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  sub->add_option("--batch", a->batch, "Samples in that step [by model]")
      ->check(CLI::PositiveNumber);
  sub->add_option("--min-bytes", a->min_bytes, "Smallest copy, 1024 or 1K [64]");
  sub->add_option("--max-bytes", a->max_bytes, "Largest copy [256M]");
  sub->add_option("--time-budget", a->time_budget, "Seconds for the whole measurement [30]")
      ->check(CLI::PositiveNumber);
  add_output_options(*sub, a->output);
  sub->footer(
      "Examples:\n"
      "  howmany transfer                              # copies by size and threads\n"
      "  howmany transfer --model resnet18 --batch 32  # and what a training step moves\n"
      "  howmany transfer --max-bytes 1G --json > summary.json\n"
      "Exit codes: 0 fine, 1 wrong data, 2 bad usage, 3 a measurement failed (the rest is kept).");
  sub->callback([a, &code] { code = run_transfer(*a); });
}

}  // namespace howmany
