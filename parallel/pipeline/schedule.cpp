// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/schedule.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text/names.h"

namespace howmany {

std::vector<std::string_view> schedule_names() {
  return {
#define X(function, name, what) name,
      HM_SCHEDULES(X)
#undef X
  };
}

std::vector<Task> make_schedule(std::string_view name, const PipelinePlace& place) {
  HM_REQUIRE(place.stages >= 1 && place.stage >= 0 && place.stage < place.stages,
             "[schedule] stage {} of {}", place.stage, place.stages);
  HM_REQUIRE(place.micro_batches >= 1, "[schedule] {} micro-batches", place.micro_batches);
#define X(function, id, what) \
  if (name == id) return schedules::function(place);
  HM_SCHEDULES(X)
#undef X
  throw std::invalid_argument("[schedule] " + unknown_name("schedule", name, schedule_names()));
}

double theoretical_bubble(std::string_view schedule, int stages, int micro_batches) {
  const Task last = make_schedule(schedule, {stages, 0, micro_batches}).back();
  const double idle = (last.kind == Task::weights ? 2 : 3) * (stages - 1);  // in forwards
  return idle / (3 * micro_batches + idle);
}

std::vector<Task> schedules::gpipe(const PipelinePlace& place) {
  std::vector<Task> tasks;
  for (int m = 0; m < place.micro_batches; ++m) tasks.push_back({Task::forward, m});
  for (int m = place.micro_batches; m-- > 0;) tasks.push_back({Task::backward, m});
  return tasks;
}

// A stage first runs one forward per later stage, then alternates forwards and backwards.
std::vector<Task> schedules::one_forward_one_backward(const PipelinePlace& place) {
  const int ahead = std::min(place.stages - 1 - place.stage, place.micro_batches);
  std::vector<Task> tasks;
  for (int m = 0; m < ahead; ++m) tasks.push_back({Task::forward, m});
  for (int m = 0; m < place.micro_batches; ++m) {
    if (m + ahead < place.micro_batches) tasks.push_back({Task::forward, m + ahead});
    tasks.push_back({Task::backward, m});
  }
  return tasks;
}

std::vector<Task> schedules::zero_bubble(const PipelinePlace& place) {
  std::vector<Task> tasks = one_forward_one_backward(place);
  tasks.push_back({Task::weights, 0});
  return tasks;
}

}  // namespace howmany
