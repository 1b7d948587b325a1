// SPDX-License-Identifier: Apache-2.0
#include "core/data/formats.h"

#include <filesystem>
#include <system_error>

#include "core/base/error.h"

namespace howmany {

std::string data_formats_help() {
  std::string text;
#define X(name, what) text += (text.empty() ? "" : "; ") + std::string(what);
  HM_DATA_FORMATS(X)
#undef X
  return text;
}

OpenedData open_data(const std::string& path, const DataOptions& options) {
  std::error_code error;
  HM_ENSURE(std::filesystem::exists(path, error), "[data] {} {}", path,
            error ? "cannot be looked at: " + error.message() : "does not exist");
#define X(name, what)                               \
  if (auto opened = formats::name(path, options)) { \
    opened->format = #name;                         \
    return std::move(*opened);                      \
  }
  HM_DATA_FORMATS(X)
#undef X
  throw Error(fmt::format("[data] {} is not a folder, nor of a format known here: {}", path,
                          data_formats_help()));
}

}  // namespace howmany
