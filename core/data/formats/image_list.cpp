// SPDX-License-Identifier: Apache-2.0
#include "core/data/formats/image_list.h"

#include <fmt/ranges.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <system_error>
#include <thread>

#include "core/base/error.h"
#include "core/base/text/table.h"
#include "core/data/formats.h"
#include "core/data/images/samples.h"

namespace howmany {
namespace {

constexpr size_t kCheckers = 16;
constexpr size_t kFilesPerChecker = 32;     // fewer do not justify a thread
constexpr size_t kCheckedPerReport = 4096;  // files
constexpr std::array<std::string_view, 8> kOtherImages = {".bmp", ".gif",  ".pgm",  ".ppm",
                                                          ".tif", ".tiff", ".avif", ".heic"};

}  // namespace

std::string describe(const Extensions& extensions) {
  std::vector<std::string> words;
  for (const auto& [extension, count] : extensions) {
    const std::string name = extension.empty() ? "without extension" : printable(extension);
    words.push_back(extensions.size() == 1 ? name : fmt::format("{} {}", count, name));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

bool named_as_image(const std::string& path) {
  const std::string extension = extension_of(path);
  return !extension.empty() && image::is_image_extension(extension.substr(1)) &&
         !std::filesystem::path(path).filename().string().starts_with("._");
}

bool is_other_image(std::string_view extension) {
  return std::ranges::count(kOtherImages, extension) > 0;
}

std::vector<std::string> check_images(size_t count, const ImageFolderOptions& options,
                                      const CheckImage& check) {
  std::vector<std::string> reasons(count);
  std::atomic<size_t> next = 0;
  const auto work = [&](const FileProgress& report) {
    image::FileCheck check_file(options.max_pixels);
    size_t reported = 0;
    for (size_t i = next++; i < count; i = next++) {
      try {
        check(i, check_file);
      } catch (const std::exception& e) {
        reasons[i] = e.what();
      }
      if (!report || i / kCheckedPerReport == reported) continue;
      reported = i / kCheckedPerReport;
      report("checked", static_cast<int64_t>(i));
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      const size_t wanted = std::min(kCheckers, count / kFilesPerChecker);
      while (helpers.size() < wanted) helpers.emplace_back(work, FileProgress());
    } catch (const std::system_error&) {
      // No more threads are available: the existing ones do the work.
    }
    work(options.progress);
  }
  return reasons;
}

void require_usable(const std::string& root, size_t usable, const std::vector<BadImage>& bad,
                    const ImageFolderOptions& options, const std::string& remedy) {
  HM_ENSURE(usable > 0, "[images] no usable image in {}: {}", root,
            bad.empty() ? remedy : first_of(bad));
  HM_ENSURE(bad.empty() || options.on_bad == OnBadImage::skip,
            "[images] {} of {} images are bad: {}. --on-bad-image skip leaves them out", bad.size(),
            usable + bad.size(), first_of(bad));
}

}  // namespace howmany
