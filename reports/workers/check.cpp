// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/check.h"

#include <fmt/format.h>

#include <algorithm>

#include <embedded/reports/workers/check.py.in.h>
#include "core/base/text/json.h"

namespace howmany::reports {
namespace {

void put(std::string& text, const std::string& token, const std::string& value) {
  const size_t at = text.find(token);
  text.replace(at, token.size(), value);
}

}  // namespace

CheckScript check_of(const WorkersFacts& facts, const WorkersAdvice& advice,
                     const std::string& data, int64_t image_size) {
  CheckScript what{data, facts.asked.batch, image_size, facts.asked.prefetch, {}};
  const int chosen = advice.recommended.value_or(0);
  for (int w = std::max(0, chosen - 1); w <= chosen + 1; ++w)
    what.rates[w] = predicted_rate(facts.probes, facts.asked, w);
  for (const WorkersPoint& p : facts.points)
    if (p.error.empty() && what.rates.contains(p.workers))
      what.rates[p.workers] = p.rate.value / facts.asked.devices;
  return what;
}

std::string check_script(const CheckScript& what) {
  std::string rates;
  for (const auto& [workers, rate] : what.rates)
    rates += fmt::format("{}{}: {:.1f}", rates.empty() ? "" : ", ", workers, rate);
  std::string text = embedded::kCheckScript;
  put(text, "@BATCH@", std::to_string(what.batch));
  put(text, "@PREFETCH@", std::to_string(what.prefetch));
  put(text, "@SIZE@", std::to_string(what.image_size));
  put(text, "@RATES@", "{" + rates + "}");
  // A JSON string is a valid Python string. Replaced last, because a folder name may contain
  // placeholders.
  std::string folder = dump_json_line(what.data);
  folder.erase(folder.find_last_not_of('\n') + 1);
  put(text, "@DATA@", folder);
  return text;
}

}  // namespace howmany::reports
