// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules: the order of a stage's tasks in one step. All stages agree on the order of
// forwards and of backwards, so messages need no number. Pure functions; thread-safe.
//
//   for (const Task& task : make_schedule("1f1b", {.stages = 4, .stage = 0, .micro_batches = 8}))
#pragma once

#include <string_view>
#include <vector>

namespace howmany {

// X(function, "name", "description"). A new schedule is one function and one line.
#define HM_SCHEDULES(X)                                                                         \
  X(gpipe, "gpipe", "all forwards, then all backwards (Huang et al. 2019)")                     \
  X(one_forward_one_backward, "1f1b",                                                           \
    "a backward as soon as it can be: as many activations as stages (Narayanan et al. 2019)")   \
  X(zero_bubble, "zb",                                                                          \
    "1f1b whose weight gradients wait for the end, one product for all micro-batches: no rank " \
    "waits "                                                                                    \
    "for them, all activations are kept (after Qi et al. 2024)")

struct Task {
  enum Kind { forward, backward, weights } kind;
  int micro_batch;  // ignored for `weights`, which covers all micro-batches
  bool operator==(const Task&) const = default;
};

struct PipelinePlace {
  int stages = 1, stage = 0, micro_batches = 1;
};

std::vector<std::string_view> schedule_names();
// Throws std::invalid_argument if the name is unknown. The message suggests the nearest name.
std::vector<Task> make_schedule(std::string_view name, const PipelinePlace& place);

// Returns the idle share of a step while the pipeline fills and drains, for p stages of equal cost:
// (p-1)/(m+p-1) for m micro-batches. Assumes that backward takes twice as long as forward. The
// share is smaller if weight gradients, half of backward, are deferred. Throws as make_schedule().
double theoretical_bubble(std::string_view schedule, int stages, int micro_batches);

namespace schedules {
#define X(function, name, what) std::vector<Task> function(const PipelinePlace& place);
HM_SCHEDULES(X)
#undef X
}  // namespace schedules

}  // namespace howmany
