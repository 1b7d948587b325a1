// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/rng.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/base/error.h"
#include "core/gpu/fill.h"

namespace howmany {

// FNV-1a
uint64_t stream_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char ch : name) hash = (hash ^ ch) * 0x100000001b3;
  return hash;
}

namespace {

// Returns a number in [0, 1) with 53 random bits.
double unit(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

constexpr size_t kWorthATeam = 1 << 16;  // elements

// four(b) returns elements 4b to 4b+3: one Philox block yields four elements.
template <typename F>
void fill(Tensor& t, F&& four) {
  if (t.device().type == DeviceType::meta) return;
  HM_REQUIRE(t.dtype() == Dtype::f32 || t.dtype() == Dtype::f64, "[rng] cannot fill {}",
             name_of(t.dtype()));
  const auto each = [&](auto out) {
#pragma omp parallel for if (out.size() >= kWorthATeam)
    for (size_t i = 0; i < out.size(); i += 4) {
      const std::array<float, 4> values = four(i / 4);
      std::copy_n(values.begin(), std::min<size_t>(4, out.size() - i), out.begin() + i);
    }
  };
  if (t.dtype() == Dtype::f32)
    each(t.mutable_values<float>());
  else
    each(t.mutable_values<double>());
}

// Returns two independent N(0, 1) numbers from two words (Box-Muller).
std::array<float, 2> two_normals(uint32_t a, uint32_t b) {
  const float u = static_cast<float>((a + 0.5) * 0x1p-32);  // in (0, 1]
  const float angle = static_cast<float>(b * (0x1p-31 * std::numbers::pi));
  const float radius = std::sqrt(-2 * std::log(u));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

uint32_t Rng::bits(uint64_t index) const { return bits4(index / 4)[index % 4]; }

double Rng::uniform(uint64_t index) const {
  const auto b = bits4(index);
  return unit(b[0], b[1]);
}

double Rng::normal(uint64_t index) const {
  const auto b = bits4(index);
  const double radius = std::sqrt(-2 * std::log(1 - unit(b[0], b[1])));
  return radius * std::cos(2 * std::numbers::pi * unit(b[2], b[3]));
}

int64_t Rng::below(uint64_t index, int64_t bound) const {
  HM_REQUIRE(bound > 0 && bound <= int64_t{1} << 53, "[rng] below({})", bound);
  return static_cast<int64_t>(uniform(index) * static_cast<double>(bound));
}

void fill_uniform(Tensor& t, double low, double high, const Rng& rng) {
  if (t.dtype() == Dtype::f32 && t.device().type == DeviceType::cuda)
    return gpu::fill_uniform(t.mutable_data<float>(), t.numel(), low, high, rng, t.device().index);
  fill(t, [&](uint64_t index) {
    std::array<float, 4> values{};
    std::ranges::transform(rng.bits4(index), values.begin(), [&](uint32_t word) {
      return static_cast<float>(low + (high - low) * (word * 0x1p-32));
    });
    return values;
  });
}

void fill_normal(Tensor& t, double mean, double deviation, const Rng& rng) {
  const auto scaled = [&](float z) { return static_cast<float>(mean + deviation * z); };
  fill(t, [&](uint64_t index) {
    const auto words = rng.bits4(index);
    const auto [a, b] = two_normals(words[0], words[1]);
    const auto [c, d] = two_normals(words[2], words[3]);
    return std::array<float, 4>{scaled(a), scaled(b), scaled(c), scaled(d)};
  });
}

Tensor randn(const Shape& shape, const Rng& rng) {
  Tensor t = Tensor::empty(shape);
  fill_normal(t, 0, 1, rng);
  return t;
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, const Rng& rng) {
  HM_REQUIRE(low < high, "[randint] no number in [{}, {})", low, high);
  Tensor t = Tensor::empty(shape, Dtype::i64);
  uint64_t draw = 0;
  for (int64_t& value : t.mutable_values<int64_t>()) value = low + rng.below(draw++, high - low);
  return t;
}

std::vector<int64_t> permutation(int64_t n, const Rng& rng) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t i = n - 1; i > 0; --i)
    std::swap(order[static_cast<size_t>(i)],
              order[static_cast<size_t>(rng.below(static_cast<uint64_t>(i), i + 1))]);
  return order;
}

}  // namespace howmany
