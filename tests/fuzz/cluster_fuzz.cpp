// SPDX-License-Identifier: Apache-2.0
// Parses any text as a cluster file. Either throws InputError, or yields finite times above 0.
#include <cmath>

#include "reports/cluster/cluster.h"
#include "reports/results/record.h"
#include "tests/support/fuzz_driver.h"

using namespace howmany;
using namespace howmany::reports;

std::vector<std::string> fuzz_seeds() {
  const std::string start =
      "name = \"a\"\ndevice = \"A100\"\nsource = \"s\"\ndevices_per_node = 4\n";
  return {
      start +
          "[node]\nbusbw_gb_per_s = 230\nlatency_us = 35\n[network]\nlinks = 2\n"
          "gbit_per_s = 200\nshare = 0.9\nlatency_us = 10\n[cores]\nus_per_call = "
          "10\nus_per_mib = 5\n",
      start +
          "max_devices = 64\nmemory_gb = 80\nprice_per_device_hour = 1.5\n[node.all_reduce_us]\n"
          "2 = [[1024, 35.5], [8388608, 159]]\n4 = [[1024, 40], [1e9, 1e4]]\n",
      start + "[node]\nbusbw_gb_per_s = {2 = 40, 4 = 28}\nlatency_us = 42\n",
      "name = \"b\"\nsource = \"s\"\nnode_of = \"v100x8\"\n[network]\nlinks = 1\ngbit_per_s = "
      "25\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const Cluster cluster = parse_cluster(text, "f");
    for (const int devices : {2, cluster.devices_per_node, 64}) {
      if (!cluster.refusal(devices).empty()) continue;
      for (const double bytes : {1.0, 1e6, 1e12}) {
        const double seconds = cluster.seconds(Collective::kAllReduce, bytes, devices);
        if (!std::isfinite(seconds) || seconds <= 0) std::abort();
      }
    }
  } catch (const InputError&) {
  }
  return 0;
}
