// SPDX-License-Identifier: Apache-2.0
#include "benches/tools/probes.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "benches/common/program.h"
#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/base/private_folder.h"
#include "core/base/process.h"
#include "core/ops/ops.h"

namespace howmany::benches {
namespace {

constexpr std::chrono::seconds kPatience(10);

void add_up(Comm& comm) {
  Tensor sum = Tensor::full({2}, comm.rank() + 1);
  comm.all_reduce(sum);
  HM_ENSURE(sum.values<float>()[1] == 3, "sums wrongly: 1 + 2 = {}", sum.values<float>()[1]);
}

Proof probe_in_processes(std::string_view name) {
  const GuardedFolder folder;
  const std::string file = folder.path() + "/found";
  const std::string self = program_path();
  const RankExit end = launch_processes(
      {self, std::string(kProbeRank), std::string(name), file}, 2,
      {.grace = std::chrono::seconds(1), .time_limit = 2 * kPatience, .mpirun = name == "mpi"});
  const auto found = nlohmann::json::parse(std::ifstream(file), nullptr, false);
  HM_ENSURE(found.is_object(), "two ranks did not come up: {}", describe_end(end, 2));
  if (found.contains("error")) throw Error(found["error"].get<std::string>());
  const auto details = found["details"].get<std::map<std::string, std::string>>();
  std::string why = "two ranks met and agreed";
  for (const auto& [what, value] : details)
    why += fmt::format("; {}: {}", what == "cuda_aware" ? "CUDA-aware" : what, value);
  std::ranges::replace(why, '_', ' ');
  return {why, details};
}

}  // namespace

Proof probe_kernels(std::string_view name) {
  const Backend& backend = backend_named(name);
  const BackendScope on(backend);
  const std::string why = backend.unavailable();
  HM_ENSURE(why.empty(), "{}", why);
  const Tensor a = Tensor::from<float>({1, 2, 3, 4}, {2, 2}, Device{.type = backend.device_type()});
  const Tensor y = ops::matmul(a, a).to(Device{});
  const std::vector<float> seen(y.values<float>().begin(), y.values<float>().end());
  HM_ENSURE((seen == std::vector<float>{7, 10, 15, 22}), "computes a wrong product: {}", seen);
  return {backend.version().empty() ? "built in" : backend.version(), {}};
}

Proof probe_comm(std::string_view name, const Place& place) {
  const CommTraits traits = comm_traits(name);
  if (place.world > 1) {
    const std::string why = comm_unavailable(name, place);
    HM_ENSURE(why.empty(), "{}", why);
    HM_ENSURE(traits.processes, "its ranks are threads, and {} started processes", place.launcher);
    return {fmt::format("not tried, as {} started {} of us", place.launcher, place.world), {}};
  }
  if (!traits.threads || traits.gpus) return probe_in_processes(name);
  launch_threads(2, add_up, name);
  return {"two ranks met and agreed", {}};
}

void probe_as_rank(const std::string& name, const std::string& file) {
  const Place place = place_from_environment();
  nlohmann::json found;
  try {
    const auto comm = connect(place, name, kPatience);
    add_up(*comm);
    found["details"] = comm->details();
  } catch (const std::exception& e) {
    found["error"] = e.what();
  }
  if (place.rank == 0) std::ofstream(file) << found;
}

}  // namespace howmany::benches
