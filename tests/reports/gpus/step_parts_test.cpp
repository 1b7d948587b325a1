// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/step_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace howmany::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Told {
  Summary summary;
  std::vector<Advice> advice{1};

  Told& point(const std::string& mode, int devices, std::map<std::string, double> seconds) {
    advice[0].model = "mlp";
    Measurement m{"speedup", mode + "/mlp", {}, {}, {}};
    m.parameters = {{"model", "mlp"},
                    {"mode", mode},
                    {"backend", "local"},
                    {"devices", std::to_string(devices)}};
    for (const auto& [name, value] : seconds)
      m.metrics["profile_" + name] = {value, "s", {}, {}, 1, "rounds"};
    summary.measurements.push_back(m);
    Point p;
    p.mode = mode;
    p.backend = "local";
    p.devices = devices;
    advice[0].points.push_back(p);
    return *this;
  }
  std::string text() const { return render_step_parts(summary, advice, "out"); }
};

TEST(StepParts, AreSharesOfTheStepInALineForOneDeviceAndTheMost) {
  Told told;
  told.point("single", 1,
             {{"step_s", 0.01}, {"compute_s", 0.008}, {"optimizer_s", 0.001}, {"host_s", 0.001}})
      .point("ddp", 2, {{"step_s", 0.02}, {"compute_s", 0.001}})
      .point("ddp", 4,
             {{"step_s", 0.02}, {"compute_s", 0.012}, {"comm_s", 0.006}, {"hidden_comm_s", 0.003}});
  EXPECT_THAT(told.text(),
              HasSubstr("  1 device: 10 ms, compute 80 %, optimizer 10 %, none of these 10 %\n"));
  EXPECT_THAT(told.text(), HasSubstr("  4 devices, ddp: 20 ms, compute 60 %, communication 30 % "
                                     "(15 % more during compute)\n"));
  EXPECT_THAT(told.text(), Not(HasSubstr("2 devices")));
}

TEST(StepParts, SayWhatRecordingThemCostAndWhereTheTraceIs) {
  Told told;
  told.point("single", 1, {{"step_s", 0.01}, {"compute_s", 0.01}, {"cost_fraction", 0.004}})
      .point("ddp", 2, {{"step_s", 0.01}, {"compute_s", 0.01}, {"cost_fraction", 0.012}});
  EXPECT_THAT(told.text(),
              HasSubstr("Recording it cost 1.2 % of a step at most; out/trace.pftrace"));
}

TEST(StepParts, SayWhatIsMissingFromThem) {
  Told whole;
  whole.point("single", 1, {{"step_s", 0.01}, {"compute_s", 0.01}, {"gpu_lost_records", 0}});
  EXPECT_THAT(whole.text(), Not(HasSubstr("Not whole")));
  Told told;
  told.point("single", 1, {{"step_s", 0.01}, {"compute_s", 0.01}, {"gpu_lost_records", 7}})
      .point("ddp", 2, {{"step_s", 0.01}, {"gpu_lost_records", 9}, {"dropped_spans", 2}});
  EXPECT_THAT(told.text(), HasSubstr("Not whole: up to 9 records of the GPU were lost, up to 2 "
                                     "spans found no room; shares may be too small.\n"));
}

TEST(StepParts, CommunicationThatIsHiddenWhollyIsStillTold) {
  Told told;
  told.point("ddp", 2,
             {{"step_s", 0.02}, {"compute_s", 0.02}, {"comm_s", 0}, {"hidden_comm_s", 0.005}});
  EXPECT_THAT(told.text(), HasSubstr("communication 0 % (25 % more during compute)"));
}

TEST(StepParts, OfAGpuHaveALineOfTheirOwn) {
  Told told;
  told.point("single", 1,
             {{"step_s", 0.01},
              {"compute_s", 0.01},
              {"gpu_compute_s", 0.007},
              {"gpu_copy_s", 0.001},
              {"gpu_idle_s", 0.002}});
  EXPECT_THAT(told.text(), HasSubstr("  1 device: 10 ms, compute 100 %\n"
                                     "    the GPU: compute 70 %, copies 10 %, idle 20 %\n"));
}

TEST(StepParts, OfASummaryWithoutProfilesAreNothing) {
  Told told;
  told.point("single", 1, {});
  EXPECT_EQ(told.text(), "");
}

}  // namespace
}  // namespace howmany::reports
