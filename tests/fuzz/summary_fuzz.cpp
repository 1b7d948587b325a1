// SPDX-License-Identifier: Apache-2.0
// Reads an untrusted summary.json. Either throws InputError, or all readers of a summary accept it.
#include "core/base/text/json.h"
#include "reports/export/exporter.h"
#include "reports/gpus/advise.h"
#include "reports/gpus/render.h"
#include "tests/reports/examples.h"
#include "tests/support/fuzz_driver.h"

using namespace howmany;
using namespace howmany::reports;

std::vector<std::string> fuzz_seeds() {
  return {dump_json(to_json(example_summary())), dump_json(to_json(example_curve()))};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    Summary summary = summary_from_json(parse_json(text, "fuzz"), "fuzz");
    const std::string written = dump_json(to_json(summary));
    const Summary again = summary_from_json(parse_json(written, "again"), "again");
    if (dump_json(to_json(again)) != written) std::abort();
    to_csv(summary);
    const AdviceOptions options = options_from_answer(summary.answer, "fuzz");
    const std::vector<Advice> advice = advise(summary.measurements, options);
    dump_json(to_json(advice, options));
    render(summary, advice, options, {});
    summary.answer["gpus"] = to_json(advice, options);
    openmetrics_text(feeds_of(summary));
  } catch (const InputError&) {
  }
  return 0;
}
