// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/select.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/text/names.h"
#include "reports/comm/run.h"

namespace howmany::reports {
namespace {

constexpr std::array kTorchBackends = {"torch:gloo", "torch:nccl", "torch:mpi"};

bool has_name(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void refuse_unknown_backends(const std::vector<std::string>& asked, const Machine& machine) {
  std::vector<std::string> known;
  for (const Part& part : machine.comms) known.push_back(part.name);
  known.insert(known.end(), kTorchBackends.begin(), kTorchBackends.end());
  for (const std::string& name : asked)
    if (!has_name(known, name))
      throw InputError(fmt::format("unknown backend \"{}\"{} (there are {})", name,
                                   did_you_mean(name, known), fmt::join(known, ", ")));
}

class CandidateSelector {
 public:
  CandidateSelector(const std::vector<std::string>& asked, const Machine& machine, bool gpus)
      : asked_(asked), machine_(machine), gpus_(gpus) {}

  void add_own() {
    for (const Part& part : machine_.comms) {
      if (!asked_.empty() && !has_name(asked_, part.name)) continue;
      const bool can = part.usable && (part.name != "nccl" || gpus_);
      if (can)
        selection_.backends.push_back(part.name);
      else
        leave_out(part.name, part.usable ? "it is for GPUs" : part.why);
    }
  }

  void add_torch(const TorchRequest& request) {
    const bool named = std::ranges::any_of(asked_, is_torch_backend);
    const bool wanted = request.wanted || named;
    if (!wanted && !asked_.empty()) return;
    if (machine_.launch.world > 1) {
      if (wanted)
        leave_out("torch", machine_.launch.launcher +
                               " started the ranks, and torch's rows start their own");
      return;
    }
    selection_.torch = find_torch(request.python);
    const std::string problem = problem_of(selection_.torch);
    if (problem.empty()) return add_rows_of_torch(named);
    if (wanted || selection_.torch.found)
      selection_.left_out.push_back(
          fmt::format("Not measured: torch: {} {}.", selection_.torch.python, problem));
  }

  BackendSelection result() {
    if (selection_.backends.empty())
      throw InputError(
          fmt::format("no backend to measure: {}", fmt::join(selection_.left_out, " ")));
    return std::move(selection_);
  }

 private:
  void leave_out(std::string_view name, std::string_view why) {
    selection_.left_out.push_back(fmt::format("Not measured: {}: {}.", name, why));
  }

  static std::string problem_of(const TorchPython& torch) {
    if (!torch.problem.empty()) return torch.problem;
    try {
      find_program(kTorchProgram);
    } catch (const InputError& error) {
      return fmt::format("has torch {}, but {}", torch.version, error.what());
    }
    return "";
  }

  void add_rows_of_torch(bool named) {
    for (const std::string name : kTorchBackends) {
      if (named && !has_name(asked_, name)) continue;
      const bool built = has_name(selection_.torch.backends, name.substr(kTorchPrefix.size()));
      if (!built && named)
        leave_out(name, fmt::format("torch {} was built without it", selection_.torch.version));
      if (!built) continue;
      if (name == "torch:mpi")
        leave_out(name, "it needs a launcher such as mpirun");
      else if (name == "torch:nccl" && !gpus_)
        leave_out(name, "it is for GPUs");
      else
        selection_.backends.push_back(name);
    }
  }

  const std::vector<std::string>& asked_;
  const Machine& machine_;
  const bool gpus_;
  BackendSelection selection_;
};

}  // namespace

BackendSelection select_backends(const std::vector<std::string>& asked, const TorchRequest& torch,
                                 const Machine& machine, bool gpus) {
  refuse_unknown_backends(asked, machine);
  CandidateSelector selector(asked, machine, gpus);
  selector.add_own();
  selector.add_torch(torch);
  return selector.result();
}

}  // namespace howmany::reports
