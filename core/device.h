// Devices and the cores behind them. `cpu:k` is the k-th disjoint slice of the cores this process
// may really use (affinity mask, cpuset, cgroup v1/v2 quota, SLURM_CPUS_PER_TASK), so CPU cores
// stand in for GPUs on any machine; `cuda:k` is a visible GPU. All functions are thread-safe;
// configure_cpu_devices is called once, before threads start.
//
//   configure_cpu_devices({.cores_per_device = 1});
//   DeviceScope on(Device::parse("cpu:1"));   // this thread, and the OpenMP team it starts, now
//   run on slice 1
#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace howmany {

enum class DeviceType { cpu, cuda };

struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  std::string str() const;  // "cpu:0"
  static Device parse(
      std::string_view text);  // "cpu", "cpu:1", "cuda:3"; throws std::invalid_argument
  auto operator<=>(const Device&) const = default;
};

// "cpu:0,cpu:1" or "cpu:0-3"; duplicates are an error.
std::vector<Device> parse_devices(std::string_view list);

// One limit on the cores this process may use, as found.
struct CpuLimit {
  std::string source;  // "affinity mask", "cgroup v2 cpu.max", "SLURM_CPUS_PER_TASK", ...
  double cpus = 0;     // how many it allows
  std::string detail;  // where it was read, e.g. "/sys/fs/cgroup/cpu.max: 150000 100000"
};

struct CpuLimits {
  std::vector<int>
      allowed;     // OS cpu ids in the affinity mask, physical cores first, SMT siblings after
  int usable = 1;  // min over limits, at least 1, rounded down
  std::vector<CpuLimit> limits;  // every limit found; the smallest decides
  std::string because;           // "2 cores: affinity mask"
};

// `root` stands before /sys and /proc, and `slurm` replaces the environment, so that tests can
// describe any machine.
CpuLimits read_cpu_limits(const std::string& root = "", std::optional<std::string> slurm = {});
const CpuLimits& cpu_limits();  // read once

struct CpuDevices {
  int cores_per_device = 1;
};
// Throws std::invalid_argument when cores_per_device is below 1 or above the usable cores.
void configure_cpu_devices(CpuDevices config);
int cpu_device_count();  // how many disjoint slices exist: usable / cores_per_device
int cores_per_device();
// OS cpu ids of slice `index`; indices past cpu_device_count() wrap around (oversubscribed).
std::vector<int> cpu_slice(int index);
// True when some cpu device stands on cores that another one of the list uses too.
bool oversubscribed(const std::vector<Device>& devices);

// Binds the calling thread to a device until destroyed: core affinity and OpenMP team size for cpu.
// Nesting restores the outer binding. A thread that was never bound runs as the operating system
// likes.
class DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;
};

}  // namespace howmany
