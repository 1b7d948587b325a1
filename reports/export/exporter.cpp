// SPDX-License-Identifier: Apache-2.0
#include "reports/export/exporter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "core/base/schema/flags.h"
#include "core/base/text/names.h"

namespace howmany::reports {

std::span<const Exporter> exporters() {
#define HM_EXPORT(name, what) Exporter{#name, what, export_##name},
  static constexpr std::array kExporters = {HM_EXPORTS(HM_EXPORT)};
#undef HM_EXPORT
  return kExporters;
}

ExportRequest parse_export(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos || colon + 1 == text.size())
    throw InputError(fmt::format("{}: \"{}\" is not KIND:PATH", flag::kExport.name, text));
  const std::string kind = text.substr(0, colon);
  std::vector<std::string> known;
  for (const Exporter& exporter : exporters()) {
    if (exporter.name == kind) return {&exporter, text.substr(colon + 1)};
    known.emplace_back(exporter.name);
  }
  throw InputError(fmt::format("{}: unknown kind \"{}\"{} (there are {})", flag::kExport.name, kind,
                               did_you_mean(kind, known), fmt::join(known, ", ")));
}

}  // namespace howmany::reports
