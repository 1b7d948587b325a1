// SPDX-License-Identifier: Apache-2.0
// The interface to a GPU driver, for gpus.cpp. Use from one thread.
#pragma once

#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "benches/common/gpus.h"

namespace howmany::benches {

struct GpuUse {
  double utilisation = std::numeric_limits<double>::quiet_NaN();   // 0 to 1
  double memory_bytes = std::numeric_limits<double>::quiet_NaN();  // by all programs
};

class GpuSource {
 public:
  virtual ~GpuSource() = default;
  virtual Gpus find() = 0;
  // Both expect GPUs of find().list. link() returns "" if the driver does not report the link, and
  // use() NaN for a number that it does not report.
  virtual std::string link(const nlohmann::json& from, const nlohmann::json& to) = 0;
  virtual GpuUse use(const nlohmann::json& gpu) = 0;
};

std::unique_ptr<GpuSource> nvidia_source();
std::unique_ptr<GpuSource> amd_source(const std::filesystem::path& root);

// Adds "near_cores" and "numa_node" of the device in this folder of sysfs.
void add_place(const std::filesystem::path& device, nlohmann::json& gpu);

}  // namespace howmany::benches
