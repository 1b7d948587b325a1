// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/mode_notes.h"

#include <gmock/gmock.h>

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Point point(const std::string& mode, double efficiency, double gigabytes) {
  Point p;
  p.devices = 2;
  p.mode = mode;
  p.backend = "local";
  p.step_seconds = 0.1;
  p.speedup.value = 2 * efficiency;
  p.efficiency.value = efficiency;
  p.peak_bytes = gigabytes * 1e9;
  p.valid = true;
  return p;
}

TEST(ModeNotes, SayWhereGpusAreShortOfCores) {
  Point ddp = point("ddp", 0.7, 2);
  EXPECT_THAT(mode_notes({ddp}, 2, "2 GPUs"), IsEmpty());
  ddp.flags = {"short of cores"};
  EXPECT_THAT(mode_notes({ddp}, 2, "2 GPUs"),
              ElementsAre("2 GPUs were fed by fewer cores than they are (short of cores): with one "
                          "each or more, as by --cpus-per-task, they may do better."));
}

TEST(ModeNotes, CompareTheModesAndSayWhatTheirDevicesWaitFor) {
  Point ddp = point("ddp", 0.7, 2), pipeline = point("pipeline", 0.6, 1);
  ddp.backend = "gloo";
  ddp.exposed_seconds = 0.02;
  pipeline.bubble = 0.25;
  pipeline.theoretical_bubble = 0.11;
  EXPECT_THAT(
      mode_notes({ddp, pipeline, point("data_parallel", 0.9, 2)}, 2, "2 GPUs"),
      ElementsAre("On 2 GPUs data_parallel is the fastest way, efficiency 0.90; ddp over gloo 0.70 "
                  "(20 % of each step is spent waiting for communication), pipeline 0.60 (devices "
                  "wait for other stages 25 % of a step, 11 % in theory).",
                  "If memory is short: pipeline holds 1 GB on a device, data_parallel 2 GB; "
                  "choose it for a model that does not fit."));
}

TEST(ModeNotes, NothingWhereThereIsNothingToCompare) {
  Point failed = point("ddp", 0.5, 1), other = point("ddp", 0.5, 1);
  failed.valid = false;
  other.devices = 3;
  EXPECT_THAT(mode_notes({point("pipeline", 0.6, 1), failed, other}, 2, "2 GPUs"), IsEmpty());
}

TEST(ModeNotes, NameARankThatTheOthersWaitFor) {
  Point ddp = point("ddp", 0.7, 2);
  ddp.backend = "gloo";
  ddp.straggler = 1;
  ddp.straggler_extra_seconds = 0.035;
  EXPECT_THAT(
      mode_notes({ddp}, 2, "2 GPUs"),
      ElementsAre("A straggler: with ddp over gloo on 2 GPUs rank 1 works 35 ms longer in a "
                  "step than the others (35 %), which wait for it."));
}

TEST(ModeNotes, CallNoRankSlowWhoseLayersTakeLonger) {
  Point pipeline = point("pipeline", 0.7, 2);
  pipeline.theoretical_bubble = 0.11;
  pipeline.straggler = 0;
  pipeline.straggler_extra_seconds = 0.035;
  EXPECT_THAT(mode_notes({pipeline}, 2, "2 GPUs"),
              ElementsAre("Uneven stages: with pipeline on 2 GPUs rank 0 works 35 ms longer in a "
                          "step than the others (35 %), which wait for it: its layers take longer, "
                          "or its device is slower."));
}

TEST(ModeNotes, NameNoStragglerByNoiseNorWhenRoundsDisagree) {
  Point even = point("ddp", 0.7, 2), unsure = even, untold = even;
  even.straggler_extra_seconds = 0.004;
  unsure.straggler = 0.5;
  unsure.straggler_extra_seconds = 0.035;
  untold.straggler = untold.straggler_extra_seconds = std::nan("");
  for (const Point& p : {even, unsure, untold})
    EXPECT_THAT(mode_notes({p}, 2, "2 GPUs"), IsEmpty());
}

TEST(ModeNotes, SaysNothingOfMemoryThatWasNotToldOrIsLittle) {
  EXPECT_EQ(mode_notes({point("a", 0.9, 0.02), point("b", 0.8, 0.001)}, 2, "2 GPUs").size(), 1u);
  EXPECT_EQ(mode_notes({point("a", 0.9, std::nan("")), point("b", 0.8, std::nan(""))}, 2, "2 GPUs")
                .size(),
            1u);
}

}  // namespace
}  // namespace howmany::reports
