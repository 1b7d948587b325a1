// SPDX-License-Identifier: Apache-2.0
#include "core/data/images/image.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "core/base/text/lines.h"

namespace howmany::image {
namespace {

constexpr size_t kTail = 64;  // bytes; some writers append a few bytes
constexpr std::array<uint8_t, 2> kJpegEnd = {0xff, 0xd9};
constexpr std::array<uint8_t, 4> kPngEnd = {'I', 'E', 'N', 'D'};

bool contains(std::span<const uint8_t> bytes, std::span<const uint8_t> wanted) {
  return !std::ranges::search(bytes, wanted).empty();
}

constexpr size_t kKeptBytes = 64 << 20;

std::set<std::string, std::less<>> known_extensions() {
#define X(name, extensions) " " extensions
  std::istringstream words(HM_IMAGE_FORMATS(X));
#undef X
  return {std::istream_iterator<std::string>(words), {}};
}

}  // namespace

void fit(std::vector<uint8_t>& buffer, int64_t bytes) {
  const auto wanted = static_cast<size_t>(bytes);
  if (buffer.capacity() > kKeptBytes && wanted <= kKeptBytes) buffer = {};
  buffer.resize(wanted);
}

bool ends_as_image(std::span<const uint8_t> bytes) {
  const auto tail = bytes.last(std::min(kTail, bytes.size()));
  return contains(tail, kJpegEnd) || contains(tail, kPngEnd);
}

bool has(std::span<const uint8_t> bytes, size_t offset, std::string_view text) {
  return bytes.size() >= offset + text.size() &&
         std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

bool is_image_extension(std::string_view extension) {
  static const std::set<std::string, std::less<>> known = known_extensions();
  return known.contains(lower(extension));
}

Size AnyDecoder::open(std::span<const uint8_t> bytes, int64_t max_pixels) {
  HM_ENSURE(!bytes.empty(), "empty file");
  opened_ = nullptr;
#define X(name, extensions) \
  if (is_##name(bytes)) opened_ = name##_.get();
  HM_IMAGE_FORMATS(X)
#undef X
  HM_ENSURE(opened_ != nullptr, "neither JPEG, PNG nor WebP inside");
  const Size size = opened_->open(bytes);
  HM_ENSURE(size.width <= max_pixels / size.height, "{}x{} pixels, the limit is {}", size.width,
            size.height, max_pixels);
  return size;
}

}  // namespace howmany::image
