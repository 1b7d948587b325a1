// SPDX-License-Identifier: Apache-2.0
#include "reports/results/toml_keys.h"

namespace howmany::reports {

toml::table parse_toml(std::string_view text, const std::string& source) {
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    throw InputError(fmt::format("{}:{}: {}", source, error.source().begin.line,
                                 printable(std::string(error.description()))));
  } catch (const std::invalid_argument& error) {
    throw InputError(fmt::format("{}: {}", source, error.what()));
  }
}

}  // namespace howmany::reports
