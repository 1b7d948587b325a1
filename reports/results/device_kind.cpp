// SPDX-License-Identifier: Apache-2.0
#include "reports/results/device_kind.h"

#include <algorithm>

namespace howmany::reports {

DeviceKind device_kind(std::string_view list) {
  int gpus = 0, others = 0;
  while (!list.empty()) {
    ++(list.starts_with("cuda") ? gpus : others);
    list.remove_prefix(std::min(list.find(','), list.size() - 1) + 1);
  }
  if (gpus > 0 && others > 0) return DeviceKind::kMixed;
  return gpus > 0 ? DeviceKind::kGpu : DeviceKind::kCpu;
}

std::string_view noun_of(DeviceKind kind) {
  if (kind == DeviceKind::kMixed) return "device";
  return kind == DeviceKind::kGpu ? "GPU" : "CPU device";
}

}  // namespace howmany::reports
