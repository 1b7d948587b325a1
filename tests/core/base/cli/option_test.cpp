// SPDX-License-Identifier: Apache-2.0
#include "core/base/cli/option.h"

#include <gmock/gmock.h>

#include "core/base/error.h"

namespace howmany {
namespace {

using ::testing::ElementsAre;

struct Parsed {
  std::vector<std::string> devices;
  std::optional<double> samples;
  int64_t bytes = 4;
};

Parsed parsed(std::vector<std::string> arguments) {
  Parsed values;
  CLI::App app;
  add_devices(app, values.devices, "all");
  add_count(app, flag::kSamples, values.samples);
  add_bytes(app, flag::kMaxBytes, values.bytes, "4");
  std::ranges::reverse(arguments);
  app.parse(arguments);
  return values;
}

TEST(Option, RangesOfDevicesAreExpanded) {
  EXPECT_THAT(parsed({"--devices", "cpu:1-3,cuda:0,cpu:x"}).devices,
              ElementsAre("cpu:1", "cpu:2", "cpu:3", "cuda:0", "cpu:x"));
  EXPECT_THAT(parsed({"--devices", "cpu:0", "--devices", "cpu:2"}).devices,
              ElementsAre("cpu:0", "cpu:2"));
  EXPECT_THROW(parsed({"--devices", "cpu:0,"}), CLI::ValidationError);
}

TEST(Option, CountsAndBytesHaveUnits) {
  EXPECT_EQ(parsed({"--samples", "1.28M"}).samples, 1.28e6);
  EXPECT_EQ(parsed({}).samples, std::nullopt);
  EXPECT_EQ(parsed({"--max-bytes", "64K"}).bytes, 65536);
  EXPECT_EQ(parsed({}).bytes, 4);
  EXPECT_THROW(parsed({"--max-bytes", "lots"}), InputError);
  EXPECT_THROW(parsed({"--samples", "-1"}), InputError);
}

}  // namespace
}  // namespace howmany
