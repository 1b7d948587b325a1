#include <omp.h>
#include <sched.h>

#include <algorithm>

#include "core/device.h"

namespace howmany {
namespace {

struct Binding {
  cpu_set_t mask;
  int team = 0;  // OpenMP threads
};

thread_local const Binding* bound = nullptr;  // innermost scope of this thread
thread_local bool team_moved = false;         // its OpenMP team was bound by a scope before

Binding slice_binding(int index) {
  const std::vector<int> cores = cpu_slice(index);
  Binding binding{{}, static_cast<int>(cores.size())};
  CPU_ZERO(&binding.mask);
  for (const int core : cores) CPU_SET(core, &binding.mask);
  return binding;
}

Binding current_binding() {
  Binding binding{{}, omp_get_max_threads()};
  CPU_ZERO(&binding.mask);
  sched_getaffinity(0, sizeof binding.mask, &binding.mask);
  return binding;
}

bool same(const Binding& a, const Binding& b) {
  return a.team == b.team && CPU_EQUAL(&a.mask, &b.mask);
}

// libgomp keeps the threads of a team between parallel regions, so they must move with the thread
// that leads them. ThreadSanitizer does not see how libgomp hands them the mask.
__attribute__((no_sanitize("thread"))) void move_team(const Binding& binding) {
#pragma omp parallel num_threads(binding.team)
  sched_setaffinity(0, sizeof binding.mask, &binding.mask);
}

void apply(const Binding& binding, bool bind_team) {
  sched_setaffinity(0, sizeof binding.mask,
                    &binding.mask);  // refused: run where the system puts us
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
  if (device.type != DeviceType::cpu) return;
  const Binding wanted = slice_binding(device.index);
  if (bound && same(*bound, wanted)) return;
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
