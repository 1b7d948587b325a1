#include <omp.h>
#include <sched.h>

#include <array>

#include "core/device.h"

namespace howmany {
namespace {

struct Binding {
  int slice = -1;                   // none
  int team = 0;                     // OpenMP threads
  int dynamic = 0;                  // whether OpenMP may give fewer (OMP_DYNAMIC)
  std::array<cpu_set_t, 8> mask{};  // 8192 cpus, more than sched_getaffinity's fixed-size form
};

thread_local const Binding* bound = nullptr;  // innermost scope of this thread
thread_local bool team_moved = false;         // its OpenMP team was bound by a scope before

Binding slice_binding(int index) {
  Binding binding{index % cpu_device_count(), cores_per_device(), 0};
  for (const int core : cpu_slice(index)) CPU_SET_S(core, sizeof binding.mask, binding.mask.data());
  return binding;
}

Binding current_binding() {
  Binding binding{-1, omp_get_max_threads(), omp_get_dynamic()};
  sched_getaffinity(0, sizeof binding.mask, binding.mask.data());
  return binding;
}

bool bound_to(int index) {
  return bound && bound->team == cores_per_device() && bound->slice == index % cpu_device_count();
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
  bool outer_team_moved;
};

DeviceScope::DeviceScope(Device device) {
  if (device.type != DeviceType::cpu || bound_to(device.index)) return;
  const Binding wanted = slice_binding(device.index);
  saved_ =
      std::make_unique<Saved>(Saved{bound ? *bound : current_binding(), wanted, bound, team_moved});
  apply(wanted, true);
  team_moved = team_moved || wanted.team > 1;
  bound = &saved_->now;
}

DeviceScope::~DeviceScope() {
  if (!saved_) return;
  apply(saved_->before, team_moved);
  bound = saved_->outer;
  team_moved = saved_->outer_team_moved;
}

}  // namespace howmany
