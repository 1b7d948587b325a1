#include "core/data/images/image.h"

#include <algorithm>
#include <array>

namespace howmany::image {
namespace {

constexpr std::array<uint8_t, 3> kJpegMagic = {0xff, 0xd8, 0xff};
constexpr std::array<uint8_t, 8> kPngMagic = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

bool starts_with(std::span<const uint8_t> bytes, std::span<const uint8_t> magic) {
  return bytes.size() >= magic.size() && std::ranges::equal(bytes.first(magic.size()), magic);
}

constexpr size_t kTail = 64;  // bytes; some writers append a few bytes
constexpr std::array<uint8_t, 2> kJpegEnd = {0xff, 0xd9};
constexpr std::array<uint8_t, 4> kPngEnd = {'I', 'E', 'N', 'D'};

bool contains(std::span<const uint8_t> bytes, std::span<const uint8_t> wanted) {
  return !std::ranges::search(bytes, wanted).empty();
}

constexpr size_t kKeptBytes = 64 << 20;

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

Size AnyDecoder::open(std::span<const uint8_t> bytes, int64_t max_pixels) {
  HM_ENSURE(!bytes.empty(), "empty file");
  opened_ = starts_with(bytes, kJpegMagic)  ? jpeg_.get()
            : starts_with(bytes, kPngMagic) ? png_.get()
                                            : nullptr;
  HM_ENSURE(opened_ != nullptr, "neither JPEG nor PNG inside");
  const Size size = opened_->open(bytes);
  HM_ENSURE(size.width <= max_pixels / size.height, "{}x{} pixels, the limit is {}", size.width,
            size.height, max_pixels);
  return size;
}

}  // namespace howmany::image
