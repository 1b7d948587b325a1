// SPDX-License-Identifier: Apache-2.0
// Numbers and labels that files hold as text. Pure.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text/lines.h"

namespace howmany {

// Returns nullopt if the text, without blanks around it, is not a number of this type.
template <class T>
std::optional<T> parsed(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

// Labels as numbers. They are classes if all are whole numbers from 0. If some are words, they are
// classes in sorted order. Else they are values.
struct Labels {
  std::vector<double> values;
  int64_t classes = 0;  // 0: values
};
Labels labels_from(const std::vector<std::string>& texts);

}  // namespace howmany
