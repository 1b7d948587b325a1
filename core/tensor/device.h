// Devices and the cores behind them. `cpu:k` is the k-th disjoint slice of the cores this process
// may really use (see cpu_limits.h), so CPU cores stand in for GPUs on any machine; `cuda:k` is a
// visible GPU. All functions are thread-safe; configure_cpu_devices is called before threads are
// bound.
//
//   configure_cpu_devices({.cores_per_device = 1});
//   DeviceScope on(Device::parse("cpu:1"));   // this thread, and the OpenMP team it starts, now
//   run on slice 1
#pragma once

#include <compare>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/host/cpu_limits.h"

namespace howmany {

enum class DeviceType { cpu, cuda };

struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  std::string str() const;  // "cpu:0"
  // "cpu", "cpu:1", "cuda:3", or the beginning of a GPU's UUID, "cuda:GPU-8932f937" or without the
  // "cuda:"; throws std::invalid_argument.
  static Device parse(std::string_view text);
  auto operator<=>(const Device&) const = default;
};

// "cpu:0,cpu:1" or "cpu:0-3"; duplicates are an error, but of a GPU, which ranks may share.
std::vector<Device> parse_devices(std::string_view list);

struct CpuDevices {
  int cores_per_device = 1;
};
// What to use unless told: a device per core, at most 8, the cores dealt out evenly.
struct CpuPlan {
  int devices = 1, cores_per_device = 1;
};
CpuPlan default_cpu_plan(const CpuLimits& limits = cpu_limits());

// Throws std::invalid_argument when cores_per_device is below 1 or above the usable cores.
void configure_cpu_devices(CpuDevices config);
int cpu_device_count();  // how many disjoint slices exist: usable / cores_per_device
int cores_per_device();
// OS cpu ids of slice `index`; indices past cpu_device_count() wrap around (oversubscribed).
std::vector<int> cpu_slice(int index);
// True when some of the list stand on the same cores or are the same GPU; the latter: only that.
bool oversubscribed(const std::vector<Device>& devices);
bool share_gpus(const std::vector<Device>& devices);

// Binds the calling thread to a device until destroyed: core affinity and OpenMP team size for cpu;
// for cuda the affinity alone, to all cores nearest to the GPU that this process may use, and
// nothing where no cores are known to be nearer than others (near_cores.h). Threads and teams
// started meanwhile inherit the cores and keep them. Nesting restores the outer binding; binding
// again to the same device is free. Where the system refuses to set the affinity only the team size
// changes. A thread that was never bound runs as the operating system likes. Scopes of a thread end
// in reverse order.
class DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;  // empty when this thread was bound so already
};

// Lets the calling thread run on every core this process may use, until the scope ends. Threads
// started meanwhile inherit that and keep it.
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
