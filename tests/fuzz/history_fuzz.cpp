// SPDX-License-Identifier: Apache-2.0
// Reads damaged histories. Either throws InputError, or finds changes within the points.
#include "reports/regression/history_command.h"
#include "reports/results/record.h"
#include "tests/support/fuzz_driver.h"

using namespace howmany;
using namespace howmany::reports;

std::vector<std::string> fuzz_seeds() {
  std::string history;
  for (int i = 0; i < 24; ++i) {
    history += R"({"commit": "c)" + std::to_string(i) +
               R"(", "date": "2026", "benchmark": "b", "metric": "m", "ratio": 1.)" +
               std::to_string(i * i % 10) + "}\n";
  }
  return {history};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    for (const Series& series : series_of({{"h", text}})) {
      for (const LevelChange& step : analyse(series, {}).steps) {
        if (step.last_good >= step.first_bad || step.first_bad >= series.points.size())
          std::abort();
      }
    }
  } catch (const InputError&) {
  }
  return 0;
}
