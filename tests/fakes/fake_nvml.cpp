// SPDX-License-Identifier: Apache-2.0
// A fake of the NVIDIA driver's libnvidia-ml.so.1, which programs find through LD_LIBRARY_PATH. It
// has two GPUs, and the second reports little. With HM_TEST_NVML=broken the driver does not start.
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

struct Gpu {
  const char* name;
};
Gpu gpus[] = {{"Test GPU 80GB"}, {"Test GPU MIG"}};

struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct Pci {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

constexpr const char* kFirst = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6";
constexpr const char* kSecond = "GPU-8ff00a11-4106-4b1a-9d02-55e07c31aa01";
constexpr int kDriverNotLoaded = 9, kNotSupported = 3;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  const char* wanted = std::getenv("HM_TEST_NVML");
  return wanted && std::string_view(wanted) == "broken" ? kDriverNotLoaded : 0;
}
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int status) {
  return status == kDriverNotLoaded ? "Driver Not Loaded" : "Not Supported";
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::strncpy(text, "550.54.15", size);
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu** gpu) {
  *gpu = &gpus[index];
  return 0;
}
int nvmlDeviceGetName(Gpu* gpu, char* text, unsigned size) {
  std::strncpy(text, gpu->name, size);
  return 0;
}
int nvmlDeviceGetUUID(Gpu* gpu, char* text, unsigned size) {
  std::strncpy(text, gpu == gpus ? kFirst : kSecond, size);
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, Gpu** gpu) {
  const std::string_view wanted(uuid);
  if (wanted != kFirst && wanted != kSecond) return kNotSupported;
  *gpu = wanted == kFirst ? &gpus[0] : &gpus[1];
  return 0;
}
// Returns true if HM_TEST_NVML requests four links between the GPUs.
bool nvlinks() {
  const char* wanted = std::getenv("HM_TEST_NVML");
  return wanted && std::string_view(wanted) == "nvlinks";
}
int nvmlDeviceGetNvLinkState(Gpu*, unsigned link, int* active) {
  if (!nvlinks()) return kNotSupported;
  *active = link < 4;
  return 0;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(Gpu*, unsigned, int* type) {
  *type = 2;
  return 0;
}
int nvmlDeviceGetTopologyCommonAncestor(Gpu*, Gpu*, int* level) {
  *level = 50;
  return 0;
}
int nvmlDeviceGetMemoryInfo(Gpu* gpu, Memory* memory) {
  if (gpu != gpus) return kNotSupported;
  *memory = {80'000'000'000, 79'000'000'000, 1'000'000'000};
  return 0;
}
int nvmlDeviceGetUtilizationRates(Gpu* gpu, Utilization* use) {
  if (gpu != gpus) return kNotSupported;
  *use = {42, 7};
  return 0;
}
int nvmlDeviceGetPciInfo_v3(Gpu* gpu, Pci* pci) {
  if (gpu != gpus) return kNotSupported;
  std::strcpy(pci->bus_id, "00000000:1B:00.0");
  return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(Gpu*, unsigned* value) {
  *value = 5;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(Gpu* gpu, unsigned* value) {
  if (gpu != gpus) return kNotSupported;
  *value = 16;
  return 0;
}
int nvmlDeviceGetMigMode(Gpu* gpu, unsigned* now, unsigned* later) {
  *now = *later = gpu != gpus;
  return 0;
}
}
