// SPDX-License-Identifier: Apache-2.0
#include "reports/submit/job_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "core/base/error.h"
#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/text/shell.h"
#include "core/base/text/table.h"
#include "reports/regression/launcher.h"

namespace howmany::reports {
namespace {

constexpr double kShareOfLimit = 0.8, kStartSeconds = 60, kLeastBudget = 30;

// An option of sbatch; the letter may be empty.
struct SbatchOption {
  const char *name, *letter;
};
constexpr SbatchOption kTime{"--time", "-t"}, kGpusPerNode{"--gpus-per-node", ""},
    kGpus{"--gpus", "-G"}, kGres{"--gres", ""};
constexpr SbatchOption kNotOfStudy[] = {{"--nodes", "-N"},
                                        {"--array", "-a"},
                                        {"--wrap", ""},
                                        {"--ntasks-per-node", ""},
                                        {"--clusters", "-M"}};

// The last one counts, as for sbatch.
std::optional<std::string> value_of(const Words& words, const SbatchOption& option) {
  const std::string name = option.name, letter = option.letter;
  std::optional<std::string> value;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == name || (!letter.empty() && word == letter))
      value = i + 1 < words.size() ? words[i + 1] : "";
    else if (word.starts_with(name + "="))
      value = word.substr(name.size() + 1);
    else if (!letter.empty() && word.starts_with(letter))
      value = word.substr(letter.size());
  }
  return value;
}

// The sum of "4", "a100:4" or "a100:2,v100:2".
std::optional<double> sum_of_counts(const std::string& text) {
  static const std::regex kCounts("(?:^|,)(?:[^,:]*:)?([0-9]{1,6})(?=,|$)");
  double sum = 0;
  for (std::sregex_iterator found(text.begin(), text.end(), kCounts), end; found != end; ++found)
    sum += std::atof((*found)[1].str().c_str());
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

// The GPUs of "gpu:4", "gpu:a100:4" or "gpu", among other resources.
std::optional<double> gpus_of_gres(const std::string& text) {
  static const std::regex kGpu("(?:^|,)gpu(?::[^,:0-9][^,:]*)?(?::([0-9]{1,6}))?(?=,|$)");
  double sum = 0;
  for (std::sregex_iterator found(text.begin(), text.end(), kGpu), end; found != end; ++found)
    sum += (*found)[1].matched ? std::atof((*found)[1].str().c_str()) : 1;
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

std::optional<double> devices_of(const Words& submit, int nodes) {
  if (const auto all = value_of(submit, kGpus)) return sum_of_counts(*all);
  const auto each = value_of(submit, kGpusPerNode), gres = value_of(submit, kGres);
  const auto here = each ? sum_of_counts(*each) : gres ? gpus_of_gres(*gres) : std::nullopt;
  return here ? std::optional(*here * nodes) : std::nullopt;
}

// The words of --submit have no job script.
void refuse_script(const Words& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    const bool is_value =
        words[i - 1].starts_with("-") && words[i - 1].find('=') == std::string::npos;
    if (!words[i].starts_with("-") && (i == 1 || !is_value))
      throw InputError(fmt::format("{}: \"{}\" is no option of sbatch; howmany writes the script",
                                   flag::kSubmit.name, words[i]));
  }
}

bool has_option(const Words& options, const char* name) {
  return std::ranges::any_of(options, [&](const std::string& word) {
    return word == name || word.starts_with(std::string(name) + "=");
  });
}

// The file names of Slurm have patterns such as %j.
std::string output_pattern(const std::string& path) {
  std::string pattern;
  for (const char c : path) pattern += c == '%' ? std::string("%%") : std::string(1, c);
  return shell_word(pattern);
}

Words words_of_job(const Study& study, const StudyJob& job) {
  const std::vector<int> counts = study.one_job ? study.nodes : std::vector<int>{job.nodes};
  Words words = {program_folder() + "/howmany",
                 "gpus",
                 flag::kNodes,
                 fmt::format("{}", fmt::join(counts, ",")),
                 flag::kOut,
                 path_of(study, job)};
  const std::optional<double> seconds = cost_of(study.submit, job.nodes).seconds;
  if (seconds && !has_option(study.options, flag::kTimeBudget.name)) {
    const double budget = std::max(kShareOfLimit * *seconds - kStartSeconds, kLeastBudget);
    words.insert(words.end(), {flag::kTimeBudget, fmt::format("{:.0f}", budget)});
  }
  words.insert(words.end(), study.options.begin(), study.options.end());
  if (!study.command.empty()) words.emplace_back("--");
  words.insert(words.end(), study.command.begin(), study.command.end());
  return words;
}

}  // namespace

Words sbatch_words(const std::string& text) {
  const Words words = split_command(flag::kSubmit, text);
  const std::string program =
      words.empty() ? "" : std::filesystem::path(words[0]).filename().string();
  if (program != "sbatch")
    throw InputError(fmt::format(
        "{} starts sbatch of Slurm only, not \"{}\". For another scheduler, print one script with "
        "{} sbatch {} {}, and submit it by hand",
        flag::kSubmit.name, program, flag::kSubmit.name, flag::kOneJob.name, flag::kDryRun.name));
  refuse_script(words);
  for (const SbatchOption& option : kNotOfStudy)
    if (value_of(words, option))
      throw InputError(fmt::format("{}: leave out {}, which a study sets itself or cannot have",
                                   flag::kSubmit.name, option.name));
  return words;
}

std::optional<double> slurm_seconds(const std::string& text) {
  static const std::regex kLimit(
      "(?:([0-9]{1,6})-)?([0-9]{1,8})(?::([0-9]{1,8}))?(?::([0-9]{1,8}))?");
  std::smatch found;
  if (!std::regex_match(text, found, kLimit)) return {};
  const auto part = [&](size_t i) { return std::atof(found[i].str().c_str()); };
  const bool days = found[1].matched, hours = days || found[4].matched;
  const double seconds =
      hours ? 86400 * part(1) + 3600 * part(2) + 60 * part(3) + part(4) : 60 * part(2) + part(3);
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

JobCost cost_of(const Words& submit, int nodes) {
  JobCost cost;
  if (const auto limit = value_of(submit, kTime)) cost.seconds = slurm_seconds(*limit);
  if (!cost.seconds) return cost;
  const double hours = *cost.seconds / 3600;
  cost.node_hours = nodes * hours;
  if (const auto devices = devices_of(submit, nodes)) cost.device_hours = *devices * hours;
  return cost;
}

std::string job_script(const Study& study, const StudyJob& job) {
  for (const std::string& path : {study.folder, study.directory})
    if (without_controls(path) != path)
      throw InputError(
          fmt::format("\"{}\" has control characters, which sbatch cannot read", path));
  const std::string out = shell_word(path_of(study, job)),
                    exit = shell_word(path_of(study, job, ".exit"));
  return fmt::format(
      "#!/bin/bash\n"
      "# A job of a study of howmany, written by howmany gpus --submit.\n"
      "#SBATCH --job-name=howmany-{}\n"
      "#SBATCH --nodes={}\n"
      "#SBATCH --ntasks-per-node=1\n"
      "#SBATCH --output={}\n"
      "# sbatch passes on its own environment: the modules and the virtual environment are those\n"
      "# of the shell that submits this.\n"
      "cd {} || exit\n"
      "# An earlier start, such as one that was preempted, may have left results.\n"
      "[ ! -e {} ] || mv {} {}.until-\"$(date +%Y%m%dT%H%M%S)\"\n"
      "rm -f {}\n"
      "{}\n"
      "code=$?\n"
      "echo $code > {}\n"
      "exit $code\n",
      job_name(study, job), job.nodes, output_pattern(path_of(study, job, ".out")),
      shell_word(study.directory), out, out, out, exit, shell_words(words_of_job(study, job)),
      exit);
}

}  // namespace howmany::reports
