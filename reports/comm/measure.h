// The measuring of `howmany backend`: the bench programs run in rounds, each with its files in the
// folder of results. Rounds that other programs disturbed are repeated within the time budget. One
// thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "reports/comm/command.h"
#include "reports/comm/rounds.h"
#include "reports/comm/select.h"

namespace howmany::reports {

struct BackendArguments {
  std::vector<std::string> backends, ops, devices, models, dtypes = {"f32"}, counts;
  std::string min_bytes = "4", max_bytes = "64M";
  std::optional<int> size_factor, cores_per_device, rounds;
  double time_budget = 60;
  bool has_default_budget = false;
  bool oversubscribe = false, in_place = false;
  TorchRequest torch;
  OutputArguments output;
};

constexpr double kCeilingSeconds = 3;
constexpr double kBackendReserve = 4;  // of the budget, for the machine's report and long calls

// Without the program's name.
std::vector<std::string> backend_bench_arguments(const BackendArguments& a,
                                                 const std::string& devices,
                                                 const std::string& backend, double seconds,
                                                 int rounds = 1);

class BackendMeasuring {
 public:
  // `python` runs torch's rows, on `cores` if there are any. The arguments must outlive this.
  BackendMeasuring(const BackendArguments& a, std::string folder, std::string python = "",
                   std::vector<int> cores = {});

  void ceilings();
  // Backends alternate, so that a change of the machine meets all of them.
  void rounds(const std::vector<std::string>& backends, const std::string& devices, int rounds);
  // All backends in one start of the ranks, which a launcher starts but once.
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
  double seconds_since_start() const;
  double seconds_left() const { return a_.time_budget - seconds_since_start(); }
  void tell(const std::string& what, double seconds) const;

  const BackendArguments& a_;
  const std::string folder_, python_;
  const std::vector<int> cores_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<std::string> backends_, left_;  // left_: the backends of the runs to come
  std::string devices_;
  RoundTime time_;
  int rounds_ = 1;
};

}  // namespace howmany::reports
