// SPDX-License-Identifier: Apache-2.0
// The kind of the devices in a list such as "cuda:0,cuda:1" or "cpu:0,cuda:0".
#pragma once

#include <string_view>

namespace howmany::reports {

enum class DeviceKind { kCpu, kGpu, kMixed };

DeviceKind device_kind(std::string_view list);  // kCpu if it is empty
std::string_view noun_of(DeviceKind kind);      // "GPU", "CPU device" or "device"

}  // namespace howmany::reports
