// SPDX-License-Identifier: Apache-2.0
#include <omp.h>
#include <sched.h>

#include <array>
#include <optional>

#include "core/host/cpu_limits.h"
#include "core/host/near_cores.h"
#include "core/tensor/device.h"

namespace howmany {
namespace {

struct Binding {
  int slice = -1, gpu = -1;         // -1: none
  int team = 0;                     // OpenMP threads
  int dynamic = 0;                  // OMP_DYNAMIC: whether OpenMP may use fewer threads
  std::array<cpu_set_t, 8> mask{};  // 8192 CPUs; a single cpu_set_t holds 1024
};

thread_local const Binding* bound = nullptr;  // innermost scope of this thread
thread_local bool team_moved = false;         // a scope has bound this thread's OpenMP team

void add(const std::vector<int>& cores, Binding& binding) {
  for (const int core : cores) CPU_SET_S(core, sizeof binding.mask, binding.mask.data());
}

Binding slice_binding(int index) {
  Binding binding{.slice = index % cpu_device_count(), .team = cores_per_device()};
  add(cpu_slice(index), binding);
  return binding;
}

// Returns nullopt if no cores are nearer than others. The team size stays the same.
std::optional<Binding> gpu_binding(int index) {
  const std::vector<int> cores = usable_near_cores(index);
  if (cores.empty()) return {};
  Binding binding{.gpu = index, .team = omp_get_max_threads(), .dynamic = omp_get_dynamic()};
  add(cores, binding);
  return binding;
}

std::optional<Binding> binding_to(Device device) {
  return device.type == DeviceType::cpu ? slice_binding(device.index) : gpu_binding(device.index);
}

Binding current_binding() {
  Binding binding{.team = omp_get_max_threads(), .dynamic = omp_get_dynamic()};
  sched_getaffinity(0, sizeof binding.mask, binding.mask.data());
  return binding;
}

bool bound_to(Device device) {
  if (!bound) return false;
  if (device.type == DeviceType::cuda) return bound->gpu == device.index;
  return bound->team == cores_per_device() && bound->slice == device.index % cpu_device_count();
}

__attribute__((no_sanitize("thread"))) void set_affinity(const Binding& binding) {
  // If the call is refused (seccomp, cores removed), the system chooses where the thread runs.
  sched_setaffinity(0, sizeof binding.mask, binding.mask.data());
}

// libgomp keeps the threads of a team between parallel regions, so they must move with their
// leader. ThreadSanitizer does not see how libgomp passes the mask to them.
__attribute__((no_sanitize("thread"))) void move_team(const Binding& binding) {
#pragma omp parallel num_threads(binding.team)
  set_affinity(binding);
}

void apply(const Binding& binding, bool bind_team) {
  set_affinity(binding);
  omp_set_dynamic(binding.dynamic);
  omp_set_num_threads(binding.team);
  if (binding.team > 1 && bind_team) move_team(binding);
}

}  // namespace

struct DeviceScope::Saved {
  Binding before, now;
  const Binding* outer;
};

DeviceScope::DeviceScope(Device device) {
  if (device.type == DeviceType::meta || bound_to(device)) return;
  const std::optional<Binding> wanted = binding_to(device);
  if (!wanted) return;
  saved_ = std::make_unique<Saved>(Saved{bound ? *bound : current_binding(), *wanted, bound});
  // Few threads of a GPU lead an OpenMP team, and starting one would create a thread per core. So
  // the team moves only if a CPU slice has moved it before.
  team_moved = team_moved || (device.type == DeviceType::cpu && wanted->team > 1);
  apply(*wanted, team_moved);
  bound = &saved_->now;
}

DeviceScope::~DeviceScope() {
  if (!saved_) return;
  apply(saved_->before, team_moved);
  bound = saved_->outer;
  team_moved = team_moved && bound;  // the end of the outermost scope has restored the team
}

struct UnboundScope::Saved {
  Binding before;
};

UnboundScope::UnboundScope() : saved_(std::make_unique<Saved>(Saved{current_binding()})) {
  Binding all{};
  add(cpu_limits().allowed, all);
  set_affinity(all);
}

UnboundScope::~UnboundScope() { set_affinity(saved_->before); }

}  // namespace howmany
