// SPDX-License-Identifier: Apache-2.0
// An NVTX tool for tests. It counts the ranges of domain "howmany" and at exit writes one line per
// category and name to $HM_TEST_RANGES.<pid>. NVTX itself loads it through NVTX_INJECTION64_PATH.
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Count {
  uint64_t pushes = 0, pops = 0, payload = 0;
};

using Key = std::pair<uint32_t, std::string>;

struct Recorder {
  std::mutex mutex;
  std::map<uint32_t, std::string> categories;
  std::map<Key, Count> counts;
};

Recorder& recorder() {  // never destroyed: threads may still pop ranges at exit
  static auto* const only = new Recorder;
  return *only;
}

thread_local std::vector<Key> open_ranges;

nvtxDomainHandle_t create_domain(const char* name) {
  const bool ours = std::string(name) == "howmany";
  return ours ? reinterpret_cast<nvtxDomainHandle_t>(&recorder()) : nullptr;
}

void name_category(nvtxDomainHandle_t, uint32_t category, const char* name) {
  const std::lock_guard lock(recorder().mutex);
  recorder().categories[category] = name;
}

int push(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) {
  const Key key{event->category, event->message.ascii};
  const std::lock_guard lock(recorder().mutex);
  ++recorder().counts[key].pushes;
  recorder().counts[key].payload += event->payload.ullValue;
  open_ranges.push_back(key);
  return static_cast<int>(open_ranges.size()) - 1;
}

int pop(nvtxDomainHandle_t) {
  if (open_ranges.empty()) return -1;
  const std::lock_guard lock(recorder().mutex);
  ++recorder().counts[open_ranges.back()].pops;
  open_ranges.pop_back();
  return static_cast<int>(open_ranges.size());
}

template <class Function>
void install(NvtxFunctionTable table, unsigned size, unsigned slot, Function* function) {
  if (slot < size) *table[slot] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" {

void hm_write_ranges(const char* path) {
  std::ofstream file(path);
  const std::lock_guard lock(recorder().mutex);
  for (const auto& [key, count] : recorder().counts)
    file << recorder().categories[key.first] << '\t' << key.second << '\t' << count.pushes << '\t'
         << count.pops << '\t' << count.payload << '\n';
}

__attribute__((destructor)) void hm_write_ranges_at_exit() {
  if (const char* path = std::getenv("HM_TEST_RANGES"))
    hm_write_ranges((std::string(path) + "." + std::to_string(getpid())).c_str());
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
    return 0;
  install(table, size, NVTX_CBID_CORE2_DomainCreateA, create_domain);
  install(table, size, NVTX_CBID_CORE2_DomainNameCategoryA, name_category);
  install(table, size, NVTX_CBID_CORE2_DomainRangePushEx, push);
  install(table, size, NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}
}
