// SPDX-License-Identifier: Apache-2.0
// Devices and their cores. `cpu:k` is the k-th disjoint slice of the cores that this process may
// use (see cpu_limits.h). So CPU cores can take the place of GPUs on any machine. `cuda:k` is
// a visible GPU.
//
// Thread safety. Thread-safe. Call configure_cpu_devices() before any thread is bound.
//
//   configure_cpu_devices({.cores_per_device = 1});
//   DeviceScope on(Device::parse("cpu:1"));   // this thread and its OpenMP team run on slice 1
#pragma once

#include <compare>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/host/cpu_limits.h"

namespace howmany {

enum class DeviceType { cpu, cuda, meta };  // meta: see meta.h; users cannot name it

struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  std::string str() const;  // "cpu:0"
  // Parses "cpu", "cpu:1", "cuda:3" or the prefix of a GPU's UUID ("cuda:GPU-8932f937" or
  // "GPU-8932f937"). Throws std::invalid_argument.
  static Device parse(std::string_view text);
  auto operator<=>(const Device&) const = default;
};

// Parses "cpu:0,cpu:1" or "cpu:0-3". Throws std::invalid_argument if a CPU device is listed twice.
// GPUs may be listed several times, because ranks may share a GPU.
std::vector<Device> parse_devices(std::string_view list);

struct CpuDevices {
  int cores_per_device = 1;
};
// The default: one device per core but at most 8, with the cores divided evenly.
struct CpuPlan {
  int devices = 1, cores_per_device = 1;
};
CpuPlan default_cpu_plan(const CpuLimits& limits = cpu_limits());

// Throws std::invalid_argument if cores_per_device is below 1 or above the usable cores.
void configure_cpu_devices(CpuDevices config);
int cpu_device_count();  // number of disjoint slices: usable / cores_per_device
int cores_per_device();
// Returns the OS CPU ids of slice `index`. Indices from cpu_device_count() on wrap around
// (oversubscribed).
std::vector<int> cpu_slice(int index);
// oversubscribed() returns true if two devices share cores or are the same GPU; share_gpus() only
// for the latter.
bool oversubscribed(const std::vector<Device>& devices);
bool share_gpus(const std::vector<Device>& devices);

// Binds the calling thread to a device until the scope ends.
//
// CPU. Sets the core affinity and the size of the OpenMP team.
// Meta. Does nothing.
// GPU. Sets only the affinity: to all usable cores nearest to the GPU. Does nothing if no cores are
//   known to be nearer than others (near_cores.h).
// Inheritance. Threads and teams that start within the scope inherit the cores and keep them.
// Nesting. Restores the outer binding at the end. Binding to the same device again costs nothing.
//   Scopes of a thread must end in reverse order.
// Failure. If the system refuses to set the affinity, only the team size changes.
// A thread that was never bound runs on any core that the system chooses.
class DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;  // null if this thread already had the binding
};

// Lets the calling thread run on every core that this process may use, until the scope ends.
// Threads that start within the scope inherit these cores and keep them.
class UnboundScope {
 public:
  UnboundScope();
  ~UnboundScope();
  UnboundScope(const UnboundScope&) = delete;
  UnboundScope& operator=(const UnboundScope&) = delete;

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;
};

}  // namespace howmany
