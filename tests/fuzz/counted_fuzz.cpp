// SPDX-License-Identifier: Apache-2.0
// Reads any text as the counted step of a script and predicts from it. Either throws InputError, or
// yields finite rates.
#include <cmath>

#include "core/base/text/json.h"
#include "reports/predict/counted_steps.h"
#include "reports/results/record.h"
#include "tests/reports/predict/counted_examples.h"
#include "tests/support/fuzz_driver.h"

using namespace howmany;
using namespace howmany::reports;

std::vector<std::string> fuzz_seeds() {
  nlohmann::json waited = count_json(8);
  waited["collectives"][0]["waited"] = 3;
  waited["loader"] = {{"core_s_per_batch", 0.1}, {"samples", 32}, {"workers", 2}};
  waited["answered"] = {{"item", 1}};
  return {count_json().dump(), count_json(8).dump(), waited.dump(), R"({"refused": "why"})"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Cluster cluster = find_cluster("a100x8");
  const std::string text(reinterpret_cast<const char*>(data), size);
  ForecastOptions options;
  options.up_to = 64;
  try {
    const CountedStep step = counted_from(parse_json(text, "f"), "f");
    if (!step.refused.empty()) return 0;
    const Forecast f = forecast(CountedScript{"f", {{step.world, step}}}, cluster, options);
    for (const ForecastRow& row : f.rows)
      if (row.refused.empty() && (!std::isfinite(row.per_s.value) || row.per_s.value <= 0))
        std::abort();
  } catch (const InputError&) {
  }
  return 0;
}
