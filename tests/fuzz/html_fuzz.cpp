// SPDX-License-Identifier: Apache-2.0
// Reads an untrusted summary.json. Either throws InputError, or makes a page of bounded size that
// contains only text.
#include "core/base/text/json.h"
#include "reports/html/html.h"
#include "tests/reports/examples.h"
#include "tests/support/fuzz_driver.h"

using namespace howmany;
using namespace howmany::reports;

std::vector<std::string> fuzz_seeds() {
  Summary loader;
  loader.answer["workers"] = {{"recommended", 2},
                              {"because", "so"},
                              {"demand", {{"samples_per_s_per_device", 9.5}}},
                              {"table",
                               {{{"workers", 1}, {"samples_per_s", 8}, {"failed", ""}},
                                {{"workers", 2}, {"samples_per_s", 9}, {"runs", 2}}}}};
  return {dump_json(to_json(example_summary())), dump_json(to_json(example_curve())),
          dump_json(to_json(loader))};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const std::string html = to_html(summary_from_json(parse_json(text, "fuzz"), "fuzz"));
    if (html.size() > (size_t{1} << 16) + 400 * size) std::abort();
    for (const char c : html)
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
  } catch (const InputError&) {
  }
  return 0;
}
