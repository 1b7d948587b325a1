// SPDX-License-Identifier: Apache-2.0
// Reads damaged files of gates and histories. Either throws InputError, or judges them.
#include <cmath>

#include "core/base/text/json.h"
#include "reports/regression/history.h"
#include "reports/regression/history_command.h"
#include "reports/regression/history_file.h"
#include "reports/regression/study/figures.h"
#include "reports/regression/study/self_test.h"
#include "reports/regression/trace.h"
#include "reports/results/record.h"
#include "tests/support/fuzz_driver.h"

using namespace howmany;
using namespace howmany::reports;

std::vector<std::string> fuzz_seeds() {
  std::string trace, history;
  for (int i = 0; i < 24; ++i) {
    const std::string n = std::to_string(i), value = "1." + std::to_string(i * i % 10);
    for (const char* arm : {"base", "same"}) {
      trace += R"({"block": )" + n + R"(, "arm": ")" + arm +
               R"(", "position": 0, "wall_s": 1, "values": {"b": {"real_time": [)" + value +
               "]}}}\n";
    }
    history += R"({"commit": "c)" + n +
               R"(", "date": "2026", "benchmark": "b", "metric": "m", "ratio": )" + value + "}\n";
  }
  return {trace, history};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const std::vector<Launch> launches = trace_from_text(text, "t");
    parse_json(dump_json(figures(launches, {6, 6, {}})), "figures");
    noise(launches, 6);
  } catch (const InputError&) {
  }
  try {
    HistoryOptions options;
    options.permutations = 19;
    for (const Series& series : history_from_text(text, "h")) {
      for (const LevelChange& step : analyse(series, options).steps) {
        if (step.last_good >= step.first_bad || step.first_bad >= series.points.size())
          std::abort();
      }
    }
  } catch (const InputError&) {
  }
  return 0;
}
