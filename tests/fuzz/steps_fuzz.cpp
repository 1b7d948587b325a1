// SPDX-License-Identifier: Apache-2.0
// Reads any text as the logged steps of a rehearsal and replays them. Either throws InputError, or
// yields finite times.
#include <cmath>

#include "core/base/text/json.h"
#include "reports/predict/replay.h"
#include "reports/results/record.h"
#include "tests/support/fuzz_driver.h"

using namespace howmany;
using namespace howmany::reports;

std::vector<std::string> fuzz_seeds() {
  return {R"([{"s": 0.1, "collectives": [
    {"op": "all_reduce", "bytes": 1048576, "ranks": 64, "at_s": 0.04, "s": 0.01, "backward": 0, "waited_s": null},
    {"op": "all_gather", "bytes": 4096, "ranks": 64, "at_s": 0.05, "s": 0.001, "backward": -1, "waited_s": 0.07},
    {"op": "all_reduce", "bytes": 1048576, "ranks": 8, "stride": 8, "at_s": 0.06, "s": 0.01, "backward": 1, "waited_s": null}]},
    {"s": 0.2, "collectives": []}])"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Cluster cluster = find_cluster("a100x8");
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const StepLog log = step_log_from(parse_json(text, "f"), 64, "f");
    for (const int devices : {1, 8, 1024})
      if (const double s = replayed_seconds(log, cluster, devices); !std::isfinite(s) || s <= 0)
        std::abort();
  } catch (const InputError&) {
  }
  return 0;
}
