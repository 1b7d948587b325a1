#include "core/device.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "core/error.h"

namespace howmany {
namespace {

int parse_index(std::string_view digits, std::string_view whole) {
  int index = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  HM_REQUIRE(error == std::errc{} && end == digits.data() + digits.size() && index >= 0,
             "[device] '{}' is not a device: expected cpu:<k> or cuda:<k>", whole);
  return index;
}

}  // namespace

std::string Device::str() const {
  return fmt::format("{}:{}", type == DeviceType::cpu ? "cpu" : "cuda", index);
}

Device Device::parse(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  HM_REQUIRE(kind == "cpu" || kind == "cuda",
             "[device] '{}' is not a device: expected cpu:<k> or cuda:<k>", text);
  const int index = colon == std::string_view::npos ? 0 : parse_index(text.substr(colon + 1), text);
  return {kind == "cpu" ? DeviceType::cpu : DeviceType::cuda, index};
}

}  // namespace howmany
