// SPDX-License-Identifier: Apache-2.0
// Reads untrusted output of loader_bench and an untrusted answer of `howmany workers`. Either
// throws InputError, or all readers accept it.
#include "core/base/text/json.h"

#include <nlohmann/json.hpp>

#include "reports/workers/advise.h"
#include "reports/workers/bench.h"
#include "reports/workers/render.h"
#include "tests/reports/workers/examples.h"
#include "tests/support/fuzz_driver.h"

using namespace howmany;
using namespace howmany::reports;

namespace {

std::string example_answer() {
  WorkersFacts facts = example_facts(900);
  search(facts);
  return dump_json(to_json(facts, advise_workers(facts)));
}

// The search ends even if the measurements are nonsensical.
void read_bench_file(const nlohmann::json& json) {
  const BenchFile file = bench_from_json(json, "fuzz");
  for (const BenchRow& row : file.rows) measurement_of(row);
  WorkersFacts facts = example_facts(900);
  add_turns(facts, file.rows);
  if (search(facts).size() > 50) std::abort();
  const std::string answer = dump_json(to_json(facts, advise_workers(facts)));
  render_workers(nlohmann::json::parse(answer), "answer", false);
}

const char* kRows = R"({"context": {}, "benchmarks": [
  {"name": "loader/images/workers:1/batch:64", "run_type": "iteration", "real_time": 128,
   "time_unit": "ms", "samples_per_s": 500, "stall_fraction": 0.4},
  {"name": "loader/images/workers:2/batch:64", "run_type": "iteration", "real_time": 64,
   "time_unit": "ms", "samples_per_s": 900, "stall_fraction": 0.01}]})";

}  // namespace

std::vector<std::string> fuzz_seeds() { return {kRows, example_answer()}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  nlohmann::json json;
  try {
    json = parse_json(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    render_workers(json, "fuzz", false);
  } catch (const InputError&) {
  }
  try {
    worker_bounds(json, {}, 1000);
  } catch (const InputError&) {
  }
  try {
    read_bench_file(json);
  } catch (const InputError&) {
  }
  return 0;
}
