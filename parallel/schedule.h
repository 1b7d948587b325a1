// The order in which a pipeline stage works through the micro-batches of a step, as data. Stages
// agree on the order of forwards and on that of backwards, so a message needs no number. Pure; any
// thread.
//
//   for (const Task& task : make_schedule("1f1b", {.stages = 4, .stage = 0, .micro_batches = 8}))
#pragma once

#include <string_view>
#include <vector>

namespace howmany {

// X(function, "name", "what it does"): another schedule is one function and its line.
#define HM_SCHEDULES(X)                                                                        \
  X(gpipe, "gpipe", "all forwards, then all backwards (Huang et al. 2019)")                    \
  X(one_forward_one_backward, "1f1b",                                                          \
    "a backward as soon as it can be: as many activations as stages (Narayanan et al. 2019)")  \
  X(zero_bubble, "zb",                                                                         \
    "1f1b whose weight gradients wait for the end, one product for all micro-batches: nobody " \
    "waits "                                                                                   \
    "for them, all activations are kept (after Qi et al. 2024)")

struct Task {
  enum Kind { forward, backward, weights } kind;
  int micro_batch;  // weights: of all
  bool operator==(const Task&) const = default;
};

struct PipelinePlace {
  int stages = 1, stage = 0, micro_batches = 1;
};

std::vector<std::string_view> schedule_names();
// Throws std::invalid_argument for an unknown name, with the nearest suggested.
std::vector<Task> make_schedule(std::string_view name, const PipelinePlace& place);

// The share of a step that stages of equal cost stand idle while the pipeline fills and drains:
// (p-1)/(m+p-1), where a backward takes twice as long as a forward; less where half of the backward
// is weight gradients that wait. Throws as make_schedule().
double theoretical_bubble(std::string_view schedule, int stages, int micro_batches);

namespace schedules {
#define X(function, name, what) std::vector<Task> function(const PipelinePlace& place);
HM_SCHEDULES(X)
#undef X
}  // namespace schedules

}  // namespace howmany
