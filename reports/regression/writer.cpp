// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/text/names.h"
#include "reports/results/record.h"

namespace howmany::reports {

std::span<const Writer> writers() {
#define HM_WRITER(name, what) Writer{#name, what, as_##name},
  static constexpr std::array kWriters = {HM_WRITERS(HM_WRITER)};
#undef HM_WRITER
  return kWriters;
}

const Writer& find_writer(const std::string& name) {
  std::vector<std::string> known;
  for (const Writer& writer : writers()) {
    if (writer.name == name) return writer;
    known.emplace_back(writer.name);
  }
  throw InputError(fmt::format("unknown format \"{}\"{} (there are {})", name,
                               did_you_mean(name, known), fmt::join(known, ", ")));
}

}  // namespace howmany::reports
