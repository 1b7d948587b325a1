// SPDX-License-Identifier: Apache-2.0
#include "core/data/formats/text_values.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace howmany {
namespace {

constexpr int64_t kMaxClasses = 1 << 24;

Labels numbered(const std::vector<std::string>& labels) {
  std::map<std::string, double> names;
  for (const std::string& label : labels) names[label];
  Labels result;
  for (auto& [name, value] : names) value = static_cast<double>(result.classes++);
  for (const std::string& label : labels) result.values.push_back(names[label]);
  return result;
}

}  // namespace

Labels labels_from(const std::vector<std::string>& texts) {
  Labels labels;
  bool whole = true;
  for (const std::string& text : texts) {
    const auto value = parsed<double>(text);
    if (!value || !std::isfinite(*value)) return numbered(texts);
    const auto id = parsed<int64_t>(text);
    whole = whole && id && *id >= 0 && *id < kMaxClasses;
    if (whole) labels.classes = std::max(labels.classes, *id + 1);
    labels.values.push_back(*value);
  }
  if (!whole) labels.classes = 0;
  return labels;
}

}  // namespace howmany
