// SPDX-License-Identifier: Apache-2.0
#include "reports/results/device_kind.h"

#include <gtest/gtest.h>

namespace howmany::reports {
namespace {

TEST(DeviceKind, IsThatOfAllInTheList) {
  EXPECT_EQ(device_kind("cuda:0"), DeviceKind::kGpu);
  EXPECT_EQ(device_kind("cuda:0,cuda:1"), DeviceKind::kGpu);
  EXPECT_EQ(device_kind("cpu:0,cpu:1,"), DeviceKind::kCpu);
  EXPECT_EQ(device_kind(""), DeviceKind::kCpu);
  EXPECT_EQ(device_kind("cuda:0,cpu:0"), DeviceKind::kMixed);
  EXPECT_EQ(device_kind("cpu:0,cpu:1,cuda:0"), DeviceKind::kMixed);
}

}  // namespace
}  // namespace howmany::reports
