// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "benches/core/cases.h"
#include "benches/core/check.h"
#include "core/base/error.h"
#include "core/ops/ops.h"
#include "core/profile/recorder.h"

namespace howmany::benches {
namespace {

// y [M,N] = x [M,K] w^T with w [N,K], with and without the bias and activation of a linear layer.
struct Linear {
  int64_t m, k, n;
  std::string name() const { return fmt::format("linear/{}-{}/batch:{}", k, n, m); }
  double flop() const { return 2 * static_cast<double>(m * n) * static_cast<double>(k); }
};

// Checks a few elements of y against directly computed sums.
void check_linear(const Tensor& input, const Tensor& weights, const Tensor& result) {
  const Tensor x = on_host(input), w = on_host(weights), y = on_host(result);
  const int64_t k = x.shape()[1], n = y.shape()[1];
  for (int64_t at = 0; at < y.numel(); at += y.numel() / 61 + 1) {
    double sum = 0;
    for (int64_t i = 0; i < k; ++i)
      sum += static_cast<double>(x.data<float>()[at / n * k + i]) *
             static_cast<double>(w.data<float>()[at % n * k + i]);
    expect_close("linear", y.data<float>()[at], std::max(sum, 0.0), 1e-4 * std::sqrt(k));
  }
}

// If dy = y, both x . dx and w . dw equal y . y for any bilinear operation.
void check_adjoint(const Tensor& y, const Tensor& x, const Tensor& dx, const Tensor& w,
                   const Tensor& dw) {
  const double want = dot(y, y);
  expect_close("x . dx", dot(x, dx), want, 1e-4 * want);
  expect_close("w . dw", dot(w, dw), want, 1e-4 * want);
}

std::vector<CoreCase> linear_cases(const Linear& s, Device device) {
  CoreCase forward{.name = s.name() + "/forward", .flop = s.flop()};
  forward.make = [s, device]() -> std::function<void()> {
    const Tensor x = activation({s.m, s.k}, "x", device), w = normal({s.n, s.k}, "w", device),
                 bias = Tensor::zeros({s.n}, Dtype::f32, device);
    check_linear(x, w, ops::linear(x, w, bias, Activation::relu));
    return [=] { ops::linear(x, w, bias, Activation::relu); };
  };
  CoreCase backward{.name = s.name() + "/backward", .flop = 2 * s.flop()};
  backward.make = [s, device]() -> std::function<void()> {
    const Tensor x = activation({s.m, s.k}, "x", device), w = normal({s.n, s.k}, "w", device);
    const Tensor y = ops::linear(x, w, {}, Activation::relu);
    const Tensor dw = room(w), dbias = Tensor::empty({s.n}, Dtype::f32, device);
    const auto run = [=] {
      return ops::linear_backward(x, w, y, y, Activation::relu, true, {dw}, {dbias});
    };
    const Tensor dx = run();
    check_adjoint(y, x, dx, w, dw);
    return run;
  };
  return {forward, backward};
}

struct Conv {
  int64_t in, out, image;
  Window window;
  int64_t batch;
  Shape x() const { return {batch, image, image, in}; }
  Shape w() const { return {out, window.size, window.size, in}; }
  std::string name() const {
    return fmt::format("conv2d/{}x{}x{}-{}-{}x{}/stride:{}/batch:{}", image, image, in, out,
                       window.size, window.size, window.stride, batch);
  }
  double flop() const {
    return 2 * static_cast<double>(ops::conv2d_shape(x(), out, window).numel()) *
           static_cast<double>(w().row_numel());
  }
};

double conv_element(const Tensor& x, const Tensor& w, Window window, const Shape& y, int64_t at) {
  const int64_t o = at % y[3], ox = at / y[3] % y[2], oy = at / y[3] / y[2] % y[1];
  const int64_t n = at / y.row_numel(), channels = x.shape()[3];
  double sum = 0;
  for (int64_t tap = 0; tap < window.size * window.size; ++tap) {
    const int64_t iy = oy * window.stride - window.padding + tap / window.size;
    const int64_t ix = ox * window.stride - window.padding + tap % window.size;
    if (iy < 0 || iy >= x.shape()[1] || ix < 0 || ix >= x.shape()[2]) continue;
    const float* pixel = x.data<float>() + ((n * x.shape()[1] + iy) * x.shape()[2] + ix) * channels;
    const float* taps = w.data<float>() + (o * window.size * window.size + tap) * channels;
    for (int64_t c = 0; c < channels; ++c)
      sum += static_cast<double>(pixel[c]) * static_cast<double>(taps[c]);
  }
  return sum;
}

void check_conv(const Tensor& input, const Tensor& weights, Window window, const Tensor& result) {
  const Tensor x = on_host(input), w = on_host(weights), y = on_host(result);
  for (int64_t at = 0; at < y.numel(); at += y.numel() / 61 + 1)
    expect_close("conv2d", y.data<float>()[at], conv_element(x, w, window, y.shape(), at),
                 2e-4 * std::sqrt(w.shape().row_numel()));
}

std::vector<CoreCase> conv_cases(const Conv& s, Device device) {
  CoreCase forward{.name = s.name() + "/forward", .flop = s.flop()};
  forward.make = [s, device]() -> std::function<void()> {
    const Tensor x = activation(s.x(), "x", device), w = normal(s.w(), "w", device);
    check_conv(x, w, s.window, ops::conv2d(x, w, {}, s.window));
    return [=] { ops::conv2d(x, w, {}, s.window); };
  };
  CoreCase backward{.name = s.name() + "/backward", .flop = 2 * s.flop()};
  backward.make = [s, device]() -> std::function<void()> {
    const Tensor x = activation(s.x(), "x", device), w = normal(s.w(), "w", device);
    const Tensor y = ops::conv2d(x, w, {}, s.window), dw = room(w);
    const auto run = [=] { return ops::conv2d_backward(x, w, y, s.window, true, {dw}, {}); };
    const Tensor dx = run();
    check_adjoint(y, x, dx, w, dw);
    return run;
  };
  return {forward, backward};
}

// Causal attention. There are few enough rows that the check is quick.
std::vector<CoreCase> attention_cases(int64_t samples, int64_t times, const CorePlace& place) {
  const int64_t heads = place.heads;
  const Shape qkv{samples, times, 3 * 64 * heads}, y{samples, times, 64 * heads};
  const Heads how{heads, true};
  const std::string name = fmt::format("attention/{}x{}/heads:{}x64", samples, times, heads);
  const double flop = ops::attention_flop(qkv, how);
  const auto forward = [=](Tensors& t) { return Tensors{ops::attention(t[0], how).y}; };
  const auto inputs = [=](Device device) {
    Tensors t{activation(qkv, "qkv", device), activation(y, "dy", device)};
    const ops::Attended out = ops::attention(t[0], how);
    t.insert(t.end(), {out.y, out.lse});
    return t;
  };
  const auto backward = [=](Tensors& t) {
    return Tensors{ops::attention_backward(t[0], {t[2], t[3]}, t[1], how)};
  };
  return {{.name = name + "/forward",
           .flop = flop,
           .make = checked(name, place.device, inputs, forward)},
          {.name = name + "/backward",
           .flop = 2 * flop,
           .make = checked(name, place.device, inputs, backward)}};
}

// Measures the cost of profiler ranges with and without recording; a sample is one range. It
// includes the start and stop of recording and the memory of the thread.
std::vector<CoreCase> range_cases() {
  constexpr int kRanges = 50'000;
  static constexpr auto ranges = [] {
    for (int i = 0; i < kRanges; ++i) const Range range(Category::compute, "range", 1);
  };
  const auto recorded = [] {
    start_recording({.spans_per_thread = kRanges});
    ranges();
    const Recording seen = stop_recording();
    HM_ENSURE(seen.spans.size() == kRanges, "[core_bench] {} ranges seen", seen.spans.size());
  };
  return {{.name = "range/off", .samples = kRanges, .make = [] { return ranges; }},
          {.name = "range/recorded", .samples = kRanges, .make = [=] { return recorded; }}};
}

}  // namespace

CorePlace place_on(Device device) {
  CorePlace place;
  place.device = device;
  if (device.type == DeviceType::cpu) return place;
  place.image = {256, 56, 56, 64};
  place.rows = {1 << 15, 1024};
  place.parameters = 8192;
  place.linear_batches = {8192};
  place.conv_batch = 256;
  place.attended = {{8, 1024}};
  place.heads = 16;
  const std::string stack = "gpt2:width=1024,layers=8,heads=16,length=1024";
  place.steps = {{"mlp", 512}, {"mlp", 8192}, {"resnet18", 256}, {stack, 8}};
  place.updates = {{"sgd", "resnet18"}, {"adamw", "resnet18"}, {"adamw", stack}};
  return place;
}

std::vector<CoreCase> operation_cases(const CorePlace& place) {
  std::vector<CoreCase> cases = memory_cases(place);
  const auto add = [&](std::vector<CoreCase> more) {
    std::ranges::move(more, std::back_inserter(cases));
  };
  for (const auto& [k, n] : place.linears)
    for (const int64_t batch : place.linear_batches) add(linear_cases({batch, k, n}, place.device));
  for (const auto& [samples, times] : place.attended) add(attention_cases(samples, times, place));
  if (place.device.type == DeviceType::cpu) add(range_cases());
  const auto conv = [&](int64_t in, int64_t out, int64_t image, Window window) {
    add(conv_cases({in, out, image, window, place.conv_batch}, place.device));
  };
  const Window same{3, 1, 1}, half{3, 2, 1}, shortcut{1, 2, 0};
  conv(3, 64, 224, {7, 2, 3});  // resnet18's first
  conv(64, 64, 56, same);
  for (const int64_t in : {64, 128, 256}) {
    const int64_t image = 56 * 64 / in;
    conv(in, 2 * in, image, half);
    conv(in, 2 * in, image, shortcut);
    conv(2 * in, 2 * in, image / 2, same);
  }
  return cases;
}

}  // namespace howmany::benches
