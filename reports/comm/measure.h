// SPDX-License-Identifier: Apache-2.0
// Measures for `howmany backend`: runs the bench programs in rounds and keeps their files in the
// results folder. Repeats rounds that other programs disturbed, within the time budget. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/budget.h"
#include "core/base/cli/output_options.h"
#include "reports/comm/run.h"
#include "reports/comm/select.h"

namespace howmany::reports {

struct BackendArguments {
  std::vector<std::string> backends, ops, devices, models, dtypes = {"f32"}, counts;
  int64_t min_bytes = 4, max_bytes = int64_t{64} << 20;
  std::optional<int> size_factor, cores_per_device, rounds;
  int nodes = 1;  // more: a rank for each device, or one, on each
  double time_budget = 60;
  bool has_default_budget = false;
  bool oversubscribe = false;
  std::vector<std::string> command;  // after "--": the user's own
  TorchRequest torch;
  OutputArguments output;
};

constexpr double kCeilingSeconds = 3;
constexpr double kBackendReserve = 4;  // seconds reserved for the machine's report and long calls

// Returns the arguments without the program's name.
std::vector<std::string> backend_bench_arguments(const BackendArguments& a,
                                                 const std::string& devices,
                                                 const std::string& backend, double seconds);

// Returns the requested number of rounds, else as many as fit into `budget` seconds. With time for
// fewer than three rounds, returns 1, because two give no spread.
int plan_rounds(double budget, int backends, std::optional<int> asked = {});

class BackendMeasuring {
 public:
  // `python` runs torch's rows, on `cores` if not empty. The arguments must outlive this object.
  BackendMeasuring(const BackendArguments& a, std::string folder, std::string python = "",
                   std::vector<int> cores = {});

  void ceilings();
  // Alternates between backends, so that changes of the machine affect all of them.
  void rounds(const std::vector<std::string>& backends, const std::string& devices, int rounds);
  // Measures all backends in one start of the ranks, because a launcher starts them once.
  void together(const std::vector<std::string>& arguments, double seconds);

  std::vector<Measurement> table() const;
  std::vector<SuiteRun> runs;

 private:
  SuiteRun backend(const std::string& name, int round);
  void use_torch(SuiteCommand& command) const;
  SuiteRun run(SuiteCommand command, int round) const;
  void keep(SuiteRun run);
  std::vector<SuiteRun> of_round(int round) const;
  void repeat_disturbed();
  bool repeat(int round);
  void announce(const std::string& what, double seconds) const;

  const BackendArguments& a_;
  const std::string folder_, python_;
  const std::vector<int> cores_;
  const Budget budget_;
  std::vector<std::string> backends_;
  std::string devices_;
  int rounds_ = 1, left_ = 0;    // left_: remaining runs
  std::vector<double> untimed_;  // seconds of each run beyond those that it was given
};

}  // namespace howmany::reports
