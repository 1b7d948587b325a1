// SPDX-License-Identifier: Apache-2.0
// Measures the time from the start of ranks as processes until all are connected, by backend and
// world size.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "benches/common/context.h"
#include "benches/common/program.h"
#include "benches/common/report.h"
#include "benches/common/timing.h"
#include "core/base/error.h"
#include "core/base/private_folder.h"

namespace howmany::benches {
namespace {

// Seconds of a clock that all processes of a host share.
double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

// Runs one rank. Rank 0 writes the time at which all ranks had met.
int meet(const std::string& backend, const std::string& file) {
  const Place place = place_from_environment();
  const auto comm = connect(place, backend);
  comm->barrier();
  if (place.rank == 0) std::ofstream(file) << fmt::format("{:.9f}", now());
  return 0;
}

double seconds_to_meet(const std::string& backend, int world) {
  const PrivateFolder folder;
  const std::string file = folder.path() + "/met";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const double start = now();
  const RankExit end =
      launch_processes({self, "rank", backend, file}, world, {.mpirun = backend == "mpi"});
  double met = 0;
  HM_ENSURE(end.code == 0 && std::ifstream(file) >> met, "rank {} ended with exit code {}",
            end.rank, end.code);
  return met - start;
}

void run_case(benchmark::State& state, const std::string& backend, int world) {
  try {
    Samples samples;
    for (int i = 0; i < 6; ++i) samples.seconds.push_back(seconds_to_meet(backend, world));
    samples.seconds.erase(samples.seconds.begin());  // the first run loads the programs from disk
    report(state, samples, {});
  } catch (const std::exception& e) {
    report_failure(state, e);
  }
}

int run(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "rank") return meet(argv[2], argv[3]);
  for (const std::string_view name : comm_names()) {
    const CommTraits traits = comm_traits(name);
    if (!traits.processes || traits.gpus) continue;
    for (const int world : {2, 4}) {
      const std::string label = fmt::format("startup/backend:{}/ranks:{}", name, world);
      benchmark::RegisterBenchmark(label.c_str(),
                                   [backend = std::string(name), world](benchmark::State& state) {
                                     run_case(state, backend, world);
                                   })
          ->Iterations(1)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  add_context();
  return run_benchmarks(argc, argv);
}

}  // namespace
}  // namespace howmany::benches

int main(int argc, char** argv) {
  return howmany::benches::run_program("startup_bench",
                                       [&] { return howmany::benches::run(argc, argv); });
}
