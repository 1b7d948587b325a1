// SPDX-License-Identifier: Apache-2.0
#include "core/base/schema/labels.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/base/schema/metrics.h"

namespace howmany {
namespace {

struct Label {
  std::string_view key, label;
};
// Keys that the rule of label_of() would not make readable.
constexpr Label kLabels[] = {{metric::kMedianS, "median time"},
                             {metric::kMinS, "shortest time"},
                             {metric::kP95S, "95th percentile"},
                             {metric::kCv, "coefficient of variation"},
                             {metric::kBytesPerS, "bandwidth"},
                             {metric::kAlgbwBytesPerS, "algorithm bandwidth"},
                             {metric::kBusbwBytesPerS, "bus bandwidth"},
                             {metric::kPipelinedS, "time per call, back to back"},
                             {metric::kStallFraction, "waiting for data"},
                             {"wait_p95_s", "95th percentile of waits"},
                             {metric::kCpuSPerSample, "CPU time per sample"},
                             {metric::kBytesPerWorker, "memory per worker"},
                             {"samples_per_s_predicted", "samples/s, predicted"},
                             {"device_list", "devices used"}};

bool drop_end(std::string& text, std::string_view end) {
  if (!text.ends_with(end) || text.size() == end.size()) return false;
  text.resize(text.size() - end.size());
  return true;
}

}  // namespace

std::string label_of(const std::string& key) {
  const auto known = std::ranges::find(kLabels, key, &Label::key);
  if (known != std::end(kLabels)) return std::string(known->label);
  std::string text = key;
  const bool rate = drop_end(text, "_per_s");
  if (!rate && !drop_end(text, "_fraction")) drop_end(text, "_s");
  std::ranges::replace(text, '_', ' ');
  return rate ? text + "/s" : text;
}

}  // namespace howmany
