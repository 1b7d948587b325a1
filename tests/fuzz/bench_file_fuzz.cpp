// SPDX-License-Identifier: Apache-2.0
// Reads the output of other programs: Google Benchmark's JSON, lines of samples, a plan, the
// inventory. Each reader throws InputError or returns usable values.
#include <cmath>

#include "core/base/text/json.h"
#include "reports/gpus/plan.h"
#include "reports/results/bench_file.h"
#include "reports/results/machine.h"
#include "tests/reports/examples.h"
#include "tests/support/fuzz_driver.h"

using namespace howmany;
using namespace howmany::reports;

std::vector<std::string> fuzz_seeds() {
  return {kBenchText, kSamplesText, dump_json(to_json(example_request())), kDevicesText};
}

namespace {

template <class Read>
void read_or_refuse(const Read& read) {
  try {
    read();
  } catch (const InputError&) {
  }
}

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_or_refuse([&] {
    for (const BenchRow& row : bench_from_json(parse_json(text, "f"), "f").rows) {
      require(std::isfinite(row.seconds) && row.seconds >= 0 && row.repetition >= 0);
    }
  });
  read_or_refuse([&] {
    for (const SampleLine& line : samples_from_text(text, "f")) {
      for (const double seconds : line.seconds) require(std::isfinite(seconds) && seconds > 0);
    }
  });
  read_or_refuse([&] {
    const Request request = request_from_json(parse_json(text, "f"), "f");
    for (const Configuration& c : configurations(request)) {
      require(c.devices >= 1 && c.devices <= static_cast<int>(request.devices.size()));
    }
  });
  read_or_refuse([&] { require(machine_from_json(parse_json(text, "f"), "f").usable_cores >= 1); });
  return 0;
}
