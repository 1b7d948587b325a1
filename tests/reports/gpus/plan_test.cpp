// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/plan.h"

#include <gmock/gmock.h>

#include "core/base/cpu.h"
#include "core/base/text/json.h"
#include "reports/gpus/command.h"
#include "reports/gpus/resolve.h"
#include "reports/results/machine.h"
#include "reports/results/record.h"
#include "tests/reports/examples.h"
#include "tests/reports/folder.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string plan_refusal(const Request& request) {
  try {
    check(request);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Plan, CountsUpToFourThenPowersOfTwoThenAll) {
  EXPECT_THAT(default_counts(1), ElementsAre(1));
  EXPECT_THAT(default_counts(3), ElementsAre(1, 2, 3));
  EXPECT_THAT(default_counts(8), ElementsAre(1, 2, 3, 4, 8));
  EXPECT_THAT(default_counts(12), ElementsAre(1, 2, 3, 4, 8, 12));
}

TEST(Plan, MeasuresEachModelsBaselineFirstAndNothingTwice) {
  Request request = example_request();
  request.modes = {"single", "data_parallel", "ddp", "ddp"};
  std::vector<std::string> told;
  for (const Configuration& c : configurations(request)) told.push_back(describe(c));
  EXPECT_EQ(told.size(), 14u);
  EXPECT_EQ(told[0], "mlp, single, 1 device");
  EXPECT_EQ(told[7], "resnet18:image=64, single, 1 device");
  EXPECT_THAT(std::vector(told.begin() + 1, told.begin() + 7),
              ElementsAre("mlp, data_parallel, 1 device", "mlp, data_parallel, 2 devices",
                          "mlp, ddp over gloo, 1 device", "mlp, ddp over gloo, 2 devices",
                          "mlp, ddp over local, 1 device", "mlp, ddp over local, 2 devices"));
}

TEST(Plan, ModesThatOneProcessDrivesAreMeasuredOverNoBackend) {
  Request request = example_request();
  request.workloads = {{"mlp", 64}};
  request.modes = {"model:micro_batches=2", "pipeline:micro_batches=8,schedule=gpipe"};
  request.one_process = {"model:micro_batches=2"};
  request.counts = {2};
  std::vector<std::string> told;
  for (const Configuration& c : configurations(request)) told.push_back(describe(c));
  EXPECT_THAT(told,
              ElementsAre("mlp, single, 1 device", "mlp, model:micro_batches=2, 2 devices",
                          "mlp, pipeline:micro_batches=8,schedule=gpipe over gloo, 2 devices",
                          "mlp, pipeline:micro_batches=8,schedule=gpipe over local, 2 devices"));
}

TEST(Plan, HasOneDeviceForSingleWhateverItsOptions) {
  Request request = example_request();
  request.workloads = {{"mlp", 64}};
  request.modes = request.one_process = {"single:graph=on"};
  request.counts = {1, 2};
  std::vector<std::string> told;
  for (const Configuration& c : configurations(request)) told.push_back(describe(c));
  EXPECT_THAT(told, ElementsAre("mlp, single, 1 device", "mlp, single:graph=on, 1 device"));
}

TEST(Plan, LeavesOutNumbersThatGroupsDoNotDivide) {
  Request request = example_request();
  request.workloads = {{"mlp", 64}};
  request.backends = {"gloo"};
  request.one_process = {};
  request.modes = {"tensor:recompute=1,ways=2"};
  request.counts = {1, 2, 3, 4};
  std::vector<int> counts;
  for (const Configuration& c : configurations(request)) counts.push_back(c.devices);
  EXPECT_THAT(counts, ElementsAre(1, 2, 4));  // the first is single
  request.modes = {"hybrid:stages=2,ways=2"};
  EXPECT_EQ(configurations(request).size(), 2U);  // single, and 4 devices
  request.modes = {"tensor:ways=8"};
  EXPECT_EQ(configurations(request).size(), 5U);  // the bench refuses them in words
}

TEST(Plan, TextsOfModesAreUntrusted) {
  EXPECT_EQ(devices_of_a_model("hybrid:ways=2,stages=4"), 8);
  EXPECT_EQ(devices_of_a_model("tensor:ways=0"), 1);
  EXPECT_EQ(devices_of_a_model("tensor:ways=99999999999"), 1);
  const std::string most = "ways=9999,stages=9999,ways=9999,stages=9999";
  EXPECT_GT(devices_of_a_model("hybrid:" + most), 9999);
}

TEST(Plan, TurnsTheOrderOfEveryOtherRound) {
  EXPECT_THAT(order_of_round(3, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(order_of_round(3, 1), ElementsAre(2, 1, 0));
  EXPECT_THAT(order_of_round(3, 2), ElementsAre(0, 1, 2));
}

TEST(Plan, BatchIsPerDeviceWhenWeakAndInAllWhenStrong) {
  Request request = example_request();
  const Configuration two{"mlp", "ddp", "gloo", 2, 64};
  EXPECT_EQ(global_batch(request, two), 128);
  request.scaling = Scaling::kStrong;
  EXPECT_EQ(global_batch(request, two), 64);
}

TEST(Plan, RefusesWhatCannotBeMeasured) {
  auto changed = [](const std::function<void(Request&)>& change) {
    Request request = example_request();
    change(request);
    return plan_refusal(request);
  };
  EXPECT_EQ(plan_refusal(example_request()), "");
  EXPECT_THAT(changed([](Request& r) { r.devices.clear(); }), HasSubstr("no device"));
  EXPECT_THAT(changed([](Request& r) { r.counts = {3}; }), HasSubstr("3 devices were requested"));
  EXPECT_THAT(changed([](Request& r) { r.devices = {"cpu:0", "cpu:0"}; }), HasSubstr("twice"));
  EXPECT_THAT(changed([](Request& r) {
                r.devices = {"cuda:0", "cuda:0"};
              }),
              HasSubstr("with --oversubscribe its ranks share it"));
  EXPECT_EQ(changed([](Request& r) {
              r.devices = {"cuda:0", "cuda:0"};
              r.oversubscribe = true;
            }),
            "");
  EXPECT_THAT(changed([](Request& r) { r.rounds = 0; }), HasSubstr("--rounds"));
  EXPECT_THAT(changed([](Request& r) { r.forwarded.set("precision", "bf61"); }),
              HasSubstr("did you mean bf16"));
  EXPECT_THAT(changed([](Request& r) { r.forwarded.set("precision", "tf32"); }),
              HasSubstr("precision tf32 needs a GPU, and cpu:0 is none"));
  EXPECT_EQ(changed([](Request& r) { r.forwarded.set("precision", "bf16"); }),
            cpu_has_bf16()
                ? ""
                : "precision bf16 needs a GPU or a CPU with AVX512-BF16, and cpu:0 is none");
  EXPECT_EQ(changed([](Request& r) {
              r.devices = {"cuda:0", "cpu:0"};
              r.forwarded.set("precision", "bf16");
            }),
            "");
  EXPECT_THAT(changed([](Request& r) { r.forwarded.set("on-bad-image", "skip"); }),
              HasSubstr("--on-bad-image skip is about files"));
  EXPECT_EQ(changed([](Request& r) {
              r.forwarded.set("data", "photos");
              r.forwarded.set("on-bad-image", "skip");
            }),
            "");
  EXPECT_THAT(changed([](Request& r) { r.workloads[0].batch = 0; }), HasSubstr("at least 1"));
  EXPECT_THAT(changed([](Request& r) {
                r.scaling = Scaling::kStrong;
                r.workloads[0].batch = 1;
              }),
              HasSubstr("smaller than 2 devices"));
}

TEST(Plan, ReadsBackWhatItWrote) {
  const TemporaryFolder folder;
  Plan plan{example_request(), {{"cpu", "x"}}};
  plan.request.forwarded.set("data", "photos");
  plan.request.workers = 3;
  plan.request.time_budget = 12.5;
  plan.request.scaling = Scaling::kStrong;
  plan.request.oversubscribe = true;
  plan.request.devices = {"cuda:0", "cuda:1"};
  plan.request.forwarded.set("precision", "tf32");
  write_plan(folder / "plan.json", plan);
  const Plan back = read_plan(folder / "plan.json");
  EXPECT_EQ(to_json(back.request), to_json(plan.request));
  EXPECT_EQ(back.machine, plan.machine);
}

TEST(Plan, OfBeforeAnOptionCameHasItNotGiven) {
  nlohmann::json old = to_json(example_request());
  for (const ForwardedOption& option : forwarded_options())
    EXPECT_FALSE(old.contains(option.name()));
  EXPECT_TRUE(request_from_json(old, "plan.json").forwarded.given().empty());
  old.update({{"kernels", ""}, {"precision", "f32"}, {"data", ""}});  // the format of older plans
  EXPECT_TRUE(request_from_json(old, "plan.json").forwarded.given().empty());
}

TEST(Plan, TheUsualWordOfAnOptionIsTheSameAsNone) {
  ForwardedOptions forwarded;
  forwarded.set("on-bad-image", "skip");
  forwarded.set("precision", "tf32");
  forwarded.set("precision", "f32");
  EXPECT_EQ(forwarded.given(), (std::map<std::string, std::string>{{"on-bad-image", "skip"}}));
  EXPECT_EQ(forwarded["precision"], "");
}

TEST(Plan, AppliesOnlyWhatWasGiven) {
  Request request = example_request();
  const auto before = to_json(request);
  apply({}, request);
  EXPECT_EQ(to_json(request), before);
  Arguments arguments;
  arguments.devices = {"cpu:1", "cuda:0"};
  arguments.global_batch = 256;
  apply(arguments, request);
  EXPECT_THAT(request.devices, ElementsAre("cpu:1", "cuda:0"));
  EXPECT_EQ(request.workloads[1].batch, 256);
  EXPECT_EQ(request.scaling, Scaling::kStrong);
  arguments.batch_per_device = 2;
  EXPECT_THROW(apply(arguments, request), InputError);
}

TEST(Machine, TakesGpusOfModelsOnlyWithKernelsForThem) {
  nlohmann::json json = parse_json(kDevicesText, "d");
  EXPECT_THAT(machine_from_json(json, "d").cuda, ElementsAre("cuda:0", "cuda:1"));
  json["gpus"][1]["vendor"] = "amd";
  EXPECT_THAT(machine_from_json(json, "d").cuda, ElementsAre("cuda:0"));
  json["backends"]["kernels"][0]["usable"] = false;
  EXPECT_THAT(machine_from_json(json, "d").cuda, ElementsAre());
  EXPECT_THAT(machine_from_json(json, "d").gpus, SizeIs(2));
  EXPECT_EQ(machine_from_json(json, "d").cores_per_device, 2);
}

TEST(Machine, NamesEachKindOfGpu) {
  const MachineGpu gcd{.device = "cuda:0", .uuid = "", .name = "MI250X", .memory_bytes = 64e9};
  EXPECT_EQ(gpus_text({gcd}), "1 GPU: MI250X, 64.0 GB");
  EXPECT_EQ(gpus_text({gcd, gcd}), "2 GPUs: MI250X, 64.0 GB each");
  EXPECT_EQ(gpus_text({gcd, {"cuda:1", ""}, gcd}), "3 GPUs: 2 x MI250X, 64.0 GB each; 1 x unnamed");
}

TEST(Machine, TellsTheFirstHardDifference) {
  const nlohmann::json here = {{"cpu", "A"}, {"cores", 2}, {"host", "x"}};
  nlohmann::json there = here;
  there["host"] = "y";
  EXPECT_EQ(difference(there, here), "");
  there["cores"] = 4;
  EXPECT_EQ(difference(there, here), "cores: 4 there, 2 here");
  EXPECT_EQ(difference({{"cpu", "A"}}, here), "cores: null there, 2 here");
  EXPECT_EQ(difference({{"memory_bytes", 101e9}}, {{"memory_bytes", 100e9}}), "");
  EXPECT_EQ(difference({{"memory_bytes", 64e9}}, {{"memory_bytes", 100e9}}),
            "memory_bytes: 64000000000.0 there, 100000000000.0 here");
}

}  // namespace
}  // namespace howmany::reports
