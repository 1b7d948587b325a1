// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/placement.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/gpu/device_event.h"

namespace howmany {
namespace {

constexpr std::string_view kExample = "write it as 0-3:cpu:0,4-9:cpu:1 (in a mode's option: +)";

size_t unit_number(std::string_view text, std::string_view item) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  HM_REQUIRE(error == std::errc{} && end == text.data() + text.size(),
             "[placement] '{}' has no unit number '{}': {}", item, text, kExample);
  return value;
}

PlacedPart parse_item(std::string_view item, size_t units) {
  const size_t colon = item.find(':');
  HM_REQUIRE(colon != std::string_view::npos && colon + 1 < item.size(),
             "[placement] '{}' names no device: {}", item, kExample);
  const std::string_view range = item.substr(0, colon);
  const size_t dash = range.find('-');
  PlacedPart part{.device = Device::parse(item.substr(colon + 1))};
  part.begin = unit_number(range.substr(0, dash), item);
  if (dash == std::string_view::npos)
    part.end = part.begin + 1;
  else if (dash + 1 == range.size())
    part.end = units;
  else
    part.end = unit_number(range.substr(dash + 1), item) + 1;
  return part;
}

void check_cover(const std::vector<PlacedPart>& parts, size_t units) {
  size_t next = 0;
  for (const PlacedPart& part : parts) {
    HM_REQUIRE(part.begin == next,
               "[placement] expected unit {} next, found {}: every unit once, in order", next,
               part.begin);
    HM_REQUIRE(part.end > part.begin && part.end <= units,
               "[placement] units {} to {} of a model that has 0 to {}", part.begin,
               static_cast<int64_t>(part.end) - 1, units - 1);
    next = part.end;
  }
  HM_REQUIRE(next == units, "[placement] units {} to {} have no device", next, units - 1);
}

void forward_and_backward(Layer& layer, const Tensor& x, bool first) {
  Tape tape;
  if (first) tape.set_input(x);
  const Tensor y = layer.forward(x, tape);
  layer.backward(Tensor::zeros(y.shape(), y.dtype(), y.device()), tape);
}

// Only ratios of these times count.
double computed_seconds(Layer& layer, const Shape& x, double flop_per_byte) {
  constexpr double kBytesPerSecond = 2e10;
  double weights = 0;
  for (const Param* p : trainable_params(layer)) weights += static_cast<double>(p->shape.numel());
  // A weight that is read takes part in at least one product. Most rows of an embedding are not.
  const double read = std::min(weights, layer.forward_flop(x) / 2);
  const auto activations = static_cast<double>(x.numel() + layer.output_shape(x).numel());
  // Forward and backward read weights and activations; backward writes their gradients.
  const double bytes = 3 * sizeof(float) * (read + activations);
  return std::max(step_flop(layer, x) / flop_per_byte, bytes) / kBytesPerSecond;
}

}  // namespace

std::vector<PlacedPart> parse_placement(std::string_view text, size_t units) {
  std::vector<PlacedPart> parts;
  for (bool more = true; more;) {
    const size_t separator = text.find_first_of(",+");
    parts.push_back(parse_item(text.substr(0, separator), units));
    more = separator != std::string_view::npos;
    if (more) text.remove_prefix(separator + 1);
  }
  check_cover(parts, units);
  return parts;
}

// least[k][j] is the smallest possible cost of the slowest part if the first j units form k parts.
std::vector<size_t> balance(const std::vector<UnitCosts>& parts) {
  const size_t count = parts.size(), n = count > 0 ? parts[0].size() : 0;
  HM_REQUIRE(count >= 1 && count <= n, "[balance] {} units cannot be {} parts", n, count);
  std::vector<double> before(n + 1);
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector least(count + 1, std::vector<double>(n + 1, kNone));
  std::vector cut(count + 1, std::vector<size_t>(n + 1));
  least[0][0] = 0;
  for (size_t k = 1; k <= count; ++k) {
    std::partial_sum(parts[k - 1].begin(), parts[k - 1].end(), before.begin() + 1);
    for (size_t j = k; j <= n; ++j)
      for (size_t i = k - 1; i < j; ++i) {
        const double slowest = std::max(least[k - 1][i], before[j] - before[i]);
        if (slowest >= least[k][j]) continue;
        least[k][j] = slowest;
        cut[k][j] = i;
      }
  }
  std::vector<size_t> bounds(count + 1, n);
  for (size_t k = count; k > 0; --k) bounds[k - 1] = cut[k][bounds[k]];
  return bounds;
}

UnitCosts measure_units(std::span<const Unit> units, const MeasureUnits& how) {
  const DeviceScope on(how.device);
  UnitCosts seconds;
  Shape shape = with_rows_in_front(how.rows, how.sample);
  for (size_t i = 0; i < units.size(); ++i) {
    const LayerPtr layer = part(units.subspan(i, 1));
    if (how.device.type == DeviceType::meta) {
      seconds.push_back(computed_seconds(*layer, shape, how.flop_per_byte));
      shape = layer->output_shape(shape);
      continue;
    }
    materialize(*layer, {.device = how.device, .dtype = how.dtype});
    const bool ids = i == 0 && how.input == Dtype::i64;
    const Tensor x = Tensor::zeros(shape, ids ? Dtype::i64 : how.dtype, how.device);
    forward_and_backward(*layer, x, i == 0);  // warm-up: builds kernels
    double least = std::numeric_limits<double>::infinity();
    for (int r = 0; r < how.repeats; ++r) {
      const DeviceEvent begin(how.device);
      forward_and_backward(*layer, x, i == 0);
      least = std::min(least, DeviceEvent(how.device).seconds_since(begin));
    }
    seconds.push_back(least);
    shape = layer->output_shape(shape);
  }
  return seconds;
}

}  // namespace howmany
