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
  int slice = -1, gpu = -1;         // none
  int team = 0;                     // OpenMP threads
  int dynamic = 0;                  // whether OpenMP may give fewer (OMP_DYNAMIC)
  std::array<cpu_set_t, 8> mask{};  // 8192 cpus, more than sched_getaffinity's fixed-size form
};

thread_local const Binding* bound = nullptr;  // innermost scope of this thread
thread_local bool team_moved = false;         // its OpenMP team was bound by a scope before

void add(const std::vector<int>& cores, Binding& binding) {
  for (const int core : cores) CPU_SET_S(core, sizeof binding.mask, binding.mask.data());
}

Binding slice_binding(int index) {
  Binding binding{.slice = index % cpu_device_count(), .team = cores_per_device()};
  add(cpu_slice(index), binding);
  return binding;
}

// Nothing where no cores are nearer than others. The team stays as large as it is.
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
  // Refused (seccomp, cores taken away): the thread runs where the system puts it.
  sched_setaffinity(0, sizeof binding.mask, binding.mask.data());
}

// libgomp keeps the threads of a team between parallel regions, so they must move with the thread
// that leads them. ThreadSanitizer does not see how libgomp hands them the mask.
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
  if (bound_to(device)) return;
  const std::optional<Binding> wanted = binding_to(device);
  if (!wanted) return;
  saved_ = std::make_unique<Saved>(Saved{bound ? *bound : current_binding(), *wanted, bound});
  // Beside a GPU few threads ever lead a team, which would be as large as the machine: only one
  // that a slice has moved moves on.
  team_moved = team_moved || (device.type == DeviceType::cpu && wanted->team > 1);
  apply(*wanted, team_moved);
  bound = &saved_->now;
}

DeviceScope::~DeviceScope() {
  if (!saved_) return;
  apply(saved_->before, team_moved);
  bound = saved_->outer;
  team_moved = team_moved && bound;  // the outermost has brought it back
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
