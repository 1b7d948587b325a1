// SPDX-License-Identifier: Apache-2.0
// Compares any two texts as base and candidate. Either throws InputError, or judges them and
// reports the result in every format.
#include <cmath>

#include "core/base/text/json.h"
#include "reports/regression/writer.h"
#include "reports/results/record.h"
#include "tests/reports/examples.h"
#include "tests/support/fuzz_driver.h"

using namespace howmany;
using namespace howmany::reports;

std::vector<std::string> fuzz_seeds() {
  std::string many = R"({"context": {"num_cpus": 2, "howmany_blocks": "x"}, "benchmarks": [)";
  for (int i = 0; i < 12; ++i) {
    many +=
        (i > 0 ? "," : "") + (R"({"name": "a", "run_type": "iteration", "repetition_index": )" +
                              std::to_string(i) + R"(, "real_time": 1)" +
                              std::to_string(i * i % 10) + R"(, "bytes": 7, "time_unit": "us"})");
  }
  return {kBenchText, many + "]}", kSamplesText};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    Suite candidate = suite_from_text(text, "f");
    for (const Benchmark& benchmark : candidate.benchmarks) {
      for (const auto& [name, samples] : benchmark.metrics) {
        for (const Sample& sample : samples) {
          if (!std::isfinite(sample.value)) std::abort();
        }
      }
    }
    const Suite base = suite_from_text(fuzz_seeds()[1], "base");
    JudgeOptions options;
    options.metrics = {"all"};
    for (const Comparison& c : {judge(base, candidate, options), judge(candidate, base, options)}) {
      for (const Writer& writer : writers()) writer.write(c);
      parse_json(as_json(c), "json");
      parse_json(as_sarif(c), "sarif");
    }
    take_samples(candidate, text, "s");
  } catch (const InputError&) {
  }
  return 0;
}
