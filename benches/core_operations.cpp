#include <cmath>
#include <utility>

#include "benches/core_cases.h"
#include "core/error.h"
#include "core/ops.h"
#include "core/profile/recorder.h"
#include "core/rng.h"

namespace howmany::benches {
namespace {

using Tensors = std::vector<Tensor>;

Tensor normal(const Shape& shape, const char* name) {
  Tensor t = Tensor::empty(shape);
  fill_normal(t, 0, 1, Rng(1, stream_of(name)));
  return t;
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.numel(); ++i)
    sum += static_cast<double>(a.data<float>()[i]) * static_cast<double>(b.data<float>()[i]);
  return sum;
}

double rms(const Tensor& t) {
  return std::sqrt(dot(t, t) / static_cast<double>(std::max<int64_t>(t.numel(), 1)));
}

void expect_close(const std::string& what, double got, double want, double tolerance) {
  HM_ENSURE(std::abs(got - want) <= tolerance, "[core_bench] {} is {}, expected {} within {}", what,
            got, want, tolerance);
}

// y [M,N] = x [M,K] w^T, with and without what a linear layer adds; w [N,K].
struct Linear {
  int64_t m, k, n;
  std::string name() const { return fmt::format("linear/{}-{}/batch:{}", k, n, m); }
  double flop() const { return 2 * static_cast<double>(m * n) * static_cast<double>(k); }
};

// A few elements of y against their sums.
void check_linear(const Tensor& x, const Tensor& w, const Tensor& y) {
  const int64_t k = x.shape()[1], n = y.shape()[1];
  for (int64_t at = 0; at < y.numel(); at += y.numel() / 61 + 1) {
    double sum = 0;
    for (int64_t i = 0; i < k; ++i)
      sum += static_cast<double>(x.data<float>()[at / n * k + i]) *
             static_cast<double>(w.data<float>()[at % n * k + i]);
    expect_close("linear", y.data<float>()[at], std::max(sum, 0.0), 1e-4 * std::sqrt(k));
  }
}

// With dy = y, both x . dx and w . dw are y . y, whatever bilinear operation made y.
void check_adjoint(const Tensor& y, const Tensor& x, const Tensor& dx, const Tensor& w,
                   const Tensor& dw) {
  const double want = dot(y, y);
  expect_close("x . dx", dot(x, dx), want, 1e-4 * want);
  expect_close("w . dw", dot(w, dw), want, 1e-4 * want);
}

std::vector<CoreCase> linear_cases(const Linear& s) {
  CoreCase forward{.name = s.name() + "/forward", .flop = s.flop()};
  forward.make = [s]() -> std::function<void()> {
    const Tensor x = normal({s.m, s.k}, "x"), w = normal({s.n, s.k}, "w"),
                 bias = Tensor::zeros({s.n});
    check_linear(x, w, ops::linear(x, w, bias, Activation::relu));
    return [=] { ops::linear(x, w, bias, Activation::relu); };
  };
  CoreCase backward{.name = s.name() + "/backward", .flop = 2 * s.flop()};
  backward.make = [s]() -> std::function<void()> {
    const Tensor x = normal({s.m, s.k}, "x"), w = normal({s.n, s.k}, "w");
    const Tensor y = ops::linear(x, w, {}, Activation::relu);
    const Tensor dw = Tensor::empty(w.shape()), dbias = Tensor::empty({s.n});
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
  int64_t batch = 32;
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

std::vector<CoreCase> conv_cases(const Conv& s) {
  CoreCase forward{.name = s.name() + "/forward", .flop = s.flop()};
  forward.make = [s]() -> std::function<void()> {
    const Tensor x = normal(s.x(), "x"), w = normal(s.w(), "w");
    const Tensor y = ops::conv2d(x, w, {}, s.window);
    for (int64_t at = 0; at < y.numel(); at += y.numel() / 61 + 1)
      expect_close("conv2d", y.data<float>()[at], conv_element(x, w, s.window, y.shape(), at),
                   2e-4 * std::sqrt(s.w().row_numel()));
    return [=] { ops::conv2d(x, w, {}, s.window); };
  };
  CoreCase backward{.name = s.name() + "/backward", .flop = 2 * s.flop()};
  backward.make = [s]() -> std::function<void()> {
    const Tensor x = normal(s.x(), "x"), w = normal(s.w(), "w");
    const Tensor y = ops::conv2d(x, w, {}, s.window), dw = Tensor::empty(w.shape());
    const auto run = [=] { return ops::conv2d_backward(x, w, y, s.window, true, {dw}, {}); };
    const Tensor dx = run();
    check_adjoint(y, x, dx, w, dw);
    return run;
  };
  return {forward, backward};
}

// Checked against the reference on the same inputs.
std::function<std::function<void()>()> checked(const std::string& name,
                                               const std::function<Tensors()>& inputs,
                                               const std::function<Tensors(Tensors&)>& run) {
  return [=]() -> std::function<void()> {
    Tensors in = inputs(), same = inputs();
    const Tensors got = run(in);
    const BackendScope scope(backend_named("reference"));
    const Tensors want = run(same);
    for (size_t i = 0; i < got.size(); ++i) {
      Tensor off = got[i].clone();
      ops::axpy(-1, want[i], off);
      expect_close(name, rms(off), 0, 1e-4 * rms(want[i]));
    }
    return [in, run]() mutable { run(in); };
  };
}

// An operation bound by memory.
CoreCase memory_case(const std::string& name, const std::function<Tensors()>& inputs, double bytes,
                     const std::function<Tensors(Tensors&)>& run) {
  return {.name = name, .bytes = bytes, .make = checked(name, inputs, run)};
}

// Causal, and few enough rows that the reference does not keep one waiting.
std::vector<CoreCase> attention_cases(int64_t samples, int64_t times, int64_t heads) {
  const Shape qkv{samples, times, 3 * 64 * heads}, y{samples, times, 64 * heads};
  const Heads how{heads, true};
  const std::string name = fmt::format("attention/{}x{}/heads:{}x64", samples, times, heads);
  const double flop = ops::attention_flop(qkv, how);
  const auto forward = [=](Tensors& t) { return Tensors{ops::attention(t[0], how).y}; };
  const auto inputs = [=] {
    Tensors t{normal(qkv, "qkv"), normal(y, "dy")};
    const ops::Attended out = ops::attention(t[0], how);
    t.insert(t.end(), {out.y, out.lse});
    return t;
  };
  const auto backward = [=](Tensors& t) {
    return Tensors{ops::attention_backward(t[0], {t[2], t[3]}, t[1], how)};
  };
  return {{.name = name + "/forward", .flop = flop, .make = checked(name, inputs, forward)},
          {.name = name + "/backward", .flop = 2 * flop, .make = checked(name, inputs, backward)}};
}

std::vector<CoreCase> memory_cases() {
  const Shape image{32, 56, 56, 64}, channels{64}, rows{4096, 1024}, width{1024};
  const double size = 4 * static_cast<double>(image.numel());
  const double text = 4 * static_cast<double>(rows.numel());
  const auto norm = [=] {
    return Tensors{normal(image, "x"),        normal(image, "dy"),     normal(channels, "scale"),
                   normal(channels, "shift"), Tensor::zeros(channels), Tensor::full(channels, 1)};
  };
  const auto batchnorm = [](Tensors& t) {
    BatchNormState state{.running_mean = t[4], .running_var = t[5]};
    return ops::batchnorm(t[0], t[2], t[3], Activation::relu, state);
  };
  std::vector<CoreCase> cases;
  cases.push_back(memory_case("batchnorm_relu/32x56x56x64/forward", norm, 2 * size,
                              [=](Tensors& t) { return Tensors{batchnorm(t).y}; }));
  cases.push_back(memory_case(
      "batchnorm_relu/32x56x56x64/backward",
      [=] {
        Tensors t = norm();
        const ops::Normalized n = batchnorm(t);
        t.insert(t.end(), {n.y, n.mean, n.inv_std});
        return t;
      },
      3 * size,
      [](Tensors& t) {
        const Tensor dscale = Tensor::empty(t[2].shape()), dshift = Tensor::empty(t[2].shape());
        return Tensors{ops::batchnorm_backward(t[0], t[2], t[3], {t[6], t[7], t[8]}, t[1],
                                               Activation::relu, {dscale}, {dshift})};
      }));
  const auto two = [=] { return Tensors{normal(image, "a"), normal(image, "b")}; };
  cases.push_back(memory_case("add_relu/32x56x56x64", two, 3 * size, [](Tensors& t) {
    return Tensors{ops::add(t[0], t[1], Activation::relu)};
  }));
  cases.push_back(memory_case("relu/32x56x56x64/backward", two, 3 * size, [](Tensors& t) {
    return Tensors{ops::activation_backward(t[0], t[1], Activation::relu)};
  }));
  cases.push_back(memory_case(
      "gelu/4096x1024/forward", [=] { return Tensors{normal(rows, "x")}; }, 2 * text,
      [](Tensors& t) { return Tensors{ops::activation(t[0], Activation::gelu)}; }));
  cases.push_back(memory_case(
      "layernorm/4096x1024/forward",
      [=] {
        return Tensors{normal(rows, "x"), normal(width, "scale"), normal(width, "shift")};
      },
      2 * text, [](Tensors& t) { return Tensors{ops::layernorm(t[0], t[1], t[2], 1e-5).y}; }));
  cases.push_back(memory_case(
      "dropout/4096x1024", [=] { return Tensors{normal(rows, "x")}; }, 2 * text,
      [](Tensors& t) { return Tensors{ops::dropout(t[0], 0.1, {.seed = 1})}; }));
  const Window window{3, 2, 1};
  const double pooled = size / 4 * 2;  // y and the winners
  cases.push_back(memory_case(
      "max_pool/32x56x56x64-3x3/stride:2/forward", [=] { return Tensors{normal(image, "x")}; },
      size + pooled, [=](Tensors& t) { return Tensors{ops::max_pool(t[0], window).y}; }));
  cases.push_back(memory_case(
      "sgd/4096x4096",
      [] {
        const Shape w{4096, 4096};
        return Tensors{normal(w, "w"), normal(w, "g"), normal(w, "v")};
      },
      5.0 * 4 * 4096 * 4096,
      [](Tensors& t) {
        SgdParam w{t[0], t[1], t[2]};
        backend_for(t[0]).sgd({&w, 1}, {.lr = 1e-4, .momentum = 0.9});
        return Tensors{t[0], t[2]};
      }));
  return cases;
}

// What ranges cost where nobody records and where somebody does; a sample is one range. Starting
// and stopping count, as the thread's memory does.
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

std::vector<CoreCase> operation_cases() {
  std::vector<CoreCase> cases = memory_cases();
  const auto add = [&](std::vector<CoreCase> more) {
    std::ranges::move(more, std::back_inserter(cases));
  };
  for (const auto& [k, n] : {std::pair{1024, 4096}, {4096, 4096}, {4096, 1000}})
    for (const int64_t batch : {128, 512}) add(linear_cases({batch, k, n}));
  for (const auto& [samples, times] : {std::pair{16, 128}, {1, 1024}})
    add(attention_cases(samples, times, 4));
  add(range_cases());
  const Window same{3, 1, 1}, half{3, 2, 1}, shortcut{1, 2, 0};
  add(conv_cases({3, 64, 224, {7, 2, 3}}));  // resnet18's
  add(conv_cases({64, 64, 56, same}));
  for (const int64_t in : {64, 128, 256}) {
    const int64_t image = 56 * 64 / in;
    add(conv_cases({in, 2 * in, image, half}));
    add(conv_cases({in, 2 * in, image, shortcut}));
    add(conv_cases({2 * in, 2 * in, image / 2, same}));
  }
  return cases;
}

}  // namespace howmany::benches
