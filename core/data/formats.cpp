// SPDX-License-Identifier: Apache-2.0
#include "core/data/formats.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/base/error.h"
#include "core/data/formats/image_list.h"
#include "core/data/formats/text_values.h"

namespace howmany {
namespace {

constexpr std::array<std::string_view, 5> kCompressed = {".gz", ".bz2", ".xz", ".zst", ".zip"};

}  // namespace

std::string data_formats_help(const std::string& name) {
  std::string text;
#define X(format, what) \
  if (name.empty() || name == #format) text += (text.empty() ? "" : "; ") + std::string(what);
  HM_DATA_FORMATS(X)
#undef X
  return text;
}

std::string extension_of(const std::string& path) {
  return lower(std::filesystem::path(path).extension().string());
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
  const std::string extension = extension_of(path);
  const bool compressed = std::ranges::count(kCompressed, extension) > 0;
  throw Error(fmt::format("[data] {} is not a folder, nor of a format known here{}. Known are {}",
                          path,
                          compressed             ? ": decompress it"
                          : named_as_image(path) ? ": give the folder of the images"
                                                 : "",
                          data_formats_help()));
}

}  // namespace howmany
