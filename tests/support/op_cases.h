// SPDX-License-Identifier: Apache-2.0
// The operations in which every backend must agree with the reference, for
// tests/core/backends/backend_test.cpp. Each family of operations has one table of cases. Inputs
// are random. The cases have odd sizes, no rows, and gradients that are overwritten or accumulated.
// Sizes and ranges avoid results that cancel to zero, so that f32 rounding bounds the difference
// for any seed.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/ops/ops.h"
#include "tests/support/tensors.h"

namespace howmany::testing_support {

using Tensors = std::vector<Tensor>;
struct Case {
  std::string name;
  Tensors inputs;                        // f32 and i64; run() may change its copy
  std::function<Tensors(Tensors&)> run;  // returns all results
};
using Cases = std::vector<Case>;

inline constexpr int64_t kRows[] = {0, 1, 3, 17, 33};
inline constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::gelu,
                                              Activation::tanh};
inline constexpr Activation kFused[] = {Activation::none, Activation::relu};

inline Tensor not_a_number(const Shape& shape) {
  return Tensor::full(shape, std::numeric_limits<double>::quiet_NaN());
}
// The initial value of a gradient: numbers to accumulate on, or NaN to overwrite.
inline Tensor slot(Draw& draw, const Shape& shape, bool accumulate) {
  return accumulate ? draw.normal(shape) : not_a_number(shape);
}

inline Cases matmul_cases(Draw& draw) {
  Cases cases;
  for (int64_t m : kRows)
    for (int flags = 0; flags < 8; ++flags) {
      const bool ta = flags & 1, tb = flags & 2, accumulate = flags & 4;
      const int64_t k = 17, n = 33;
      cases.push_back(
          {fmt::format("{}x{}x{} flags {}", m, k, n, flags),
           {draw.normal(ta ? Shape{k, m} : Shape{m, k}),
            draw.normal(tb ? Shape{n, k} : Shape{k, n}), slot(draw, {m, n}, accumulate)},
           [=](Tensors& in) -> Tensors {
             backend_for(in[0]).matmul(in[0], ta, in[1], tb, accumulate, in[2]);
             return {in[2]};
           }});
    }
  return cases;
}

inline Cases linear_cases(Draw& draw) {
  Cases cases;
  for (int64_t rows : kRows)
    for (Activation act : kActivations)
      for (bool bias : {true, false})
        cases.push_back({fmt::format("rows {} {} bias {}", rows, name_of(act), bias),
                         {draw.normal({rows, 33}), draw.normal({17, 33}), draw.normal({17})},
                         [=](Tensors& in) -> Tensors {
                           return {ops::linear(in[0], in[1], bias ? in[2] : Tensor(), act)};
                         }});
  return cases;
}

inline Cases linear_backward_cases(Draw& draw) {
  Cases cases;
  for (int64_t rows : kRows)
    for (Activation act : kActivations)
      for (int flags = 0; flags < 8; ++flags) {
        const bool dx = flags & 1, accumulate = flags & 2, bias = flags & 4;
        cases.push_back({fmt::format("rows {} {} flags {}", rows, name_of(act), flags),
                         {draw.normal({rows, 33}), draw.normal({17, 33}), draw.normal({rows, 17}),
                          draw.normal({rows, 17}), slot(draw, {17, 33}, accumulate),
                          slot(draw, {17}, accumulate)},
                         [=](Tensors& in) -> Tensors {
                           const GradOut dbias{bias ? in[5] : Tensor(), accumulate};
                           const Tensor d = ops::linear_backward(in[0], in[1], in[2], in[3], act,
                                                                 dx, {in[4], accumulate}, dbias);
                           EXPECT_EQ(static_cast<bool>(d), dx);
                           return {dx ? d : in[4], in[4], bias ? in[5] : in[4]};
                         }});
      }
  return cases;
}

struct Image {
  int64_t n, height, width, in, out;
  Window window;
  std::string str() const {
    return fmt::format("{}x{}x{}x{} -> {}, window {}/{}/{}", n, height, width, in, out, window.size,
                       window.stride, window.padding);
  }
  Shape x() const { return {n, height, width, in}; }
  Shape w() const { return {out, window.size, window.size, in}; }
  Shape y() const { return ops::conv2d_shape(x(), out, window); }
};
inline const Image kImages[] = {
    {2, 9, 7, 3, 17, {3, 1, 1}}, {3, 8, 8, 16, 16, {3, 2, 1}}, {1, 17, 17, 3, 33, {7, 2, 3}},
    {3, 5, 6, 17, 3, {1, 2, 0}}, {3, 1, 1, 1, 17, {1, 1, 0}},  {1, 3, 3, 33, 17, {3, 1, 0}},
    {0, 5, 5, 3, 3, {3, 1, 1}},  {2, 6, 6, 32, 64, {1, 1, 0}}, {1, 4, 4, 2, 3, {2, 3, 1}}};

inline Cases conv2d_cases(Draw& draw) {
  Cases cases;
  for (const Image& i : kImages)
    for (bool bias : {true, false})
      cases.push_back({fmt::format("{} bias {}", i.str(), bias),
                       {draw.normal(i.x()), draw.normal(i.w()), draw.normal({i.out})},
                       [=](Tensors& in) -> Tensors {
                         return {ops::conv2d(in[0], in[1], bias ? in[2] : Tensor(), i.window)};
                       }});
  return cases;
}

inline Cases conv2d_backward_cases(Draw& draw) {
  Cases cases;
  for (const Image& i : kImages)
    for (int flags = 0; flags < 8; ++flags) {
      const bool dx = flags & 1, accumulate = flags & 2, bias = flags & 4;
      cases.push_back({fmt::format("{} flags {}", i.str(), flags),
                       {draw.normal(i.x()), draw.normal(i.w()), draw.normal(i.y()),
                        slot(draw, i.w(), accumulate), slot(draw, {i.out}, accumulate)},
                       [=](Tensors& in) -> Tensors {
                         const GradOut dbias{bias ? in[4] : Tensor(), accumulate};
                         const Tensor d = ops::conv2d_backward(in[0], in[1], in[2], i.window, dx,
                                                               {in[3], accumulate}, dbias);
                         EXPECT_EQ(static_cast<bool>(d), dx);
                         return {dx ? d : in[3], in[3], bias ? in[4] : in[3]};
                       }});
    }
  return cases;
}

inline Cases elementwise_cases(Draw& draw) {
  Cases cases;
  for (int64_t rows : kRows) {
    const Shape shape{rows, 17};
    for (Activation act : kActivations) {
      cases.push_back(
          {fmt::format("activation {} {}", rows, name_of(act)),
           {draw.normal(shape), draw.normal(shape)},
           [=](Tensors& in) -> Tensors {
             return {ops::activation(in[0], act), ops::activation_backward(in[0], in[1], act)};
           }});
    }
    for (Activation act : {Activation::none, Activation::relu, Activation::tanh})
      cases.push_back({fmt::format("add {} {}", rows, name_of(act)),
                       {draw.normal(shape), draw.normal(shape)},
                       [=](Tensors& in) -> Tensors { return {ops::add(in[0], in[1], act)}; }});
    cases.push_back({fmt::format("axpy {}", rows),
                     {draw.normal(shape), draw.normal(shape)},
                     [](Tensors& in) -> Tensors {
                       ops::axpy(-0.3, in[0], in[1]);
                       return {in[1]};
                     }});
    cases.push_back(
        {fmt::format("dropout {}", rows), {draw.normal(shape)}, [](Tensors& in) -> Tensors {
           return {ops::dropout(in[0], 0.3, {7, uint64_t{5} << 33, 1'000'001}),
                   ops::dropout(in[0], 0.3, {7, uint64_t{5} << 33, 1'000'000}),
                   ops::dropout(in[0], 0, {})};
         }});
  }
  cases.push_back({"NaN and infinity",
                   {Tensor::from<float>({NAN, INFINITY, -INFINITY, -0.0f}, {4})},
                   [](Tensors& in) -> Tensors {
                     return {ops::activation(in[0], Activation::relu),
                             ops::add(in[0], Tensor::zeros({4}, in[0].dtype(), in[0].device()),
                                      Activation::relu)};
                   }});
  return cases;
}

// Some shapes need sums of many chunks. Others have channels that are processed several at a time.
inline const Shape kNormShapes[] = {{0, 3},        {17, 3},       {17, 33},
                                    {2, 3, 5, 17}, {3, 4, 4, 16}, {1300, 8}};

// Values whose mean is large compared with their spread, as after a relu or an embedding. Sums of
// squares would cancel.
inline Tensor far_from_zero(Draw& draw, const Shape& shape) {
  return draw.uniform(shape, 300, 302);
}

// The first row of each channel differs greatly from all others. In the last channel all other
// values are equal.
inline Tensor first_far_off(Draw& draw, const Shape& shape) {
  Tensor x = draw.normal(shape);
  const int64_t channels = shape[-1];
  const std::span<float> values = x.mutable_values<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (i % channels == channels - 1) values[static_cast<size_t>(i)] = 2.5f;
    if (i < channels) values[static_cast<size_t>(i)] = 1e4f;
  }
  return x;
}

inline BatchNormState state_of(Tensors& in, size_t at) {
  return {.running_mean = in[at], .running_var = in[at + 1]};
}

inline Cases batchnorm_cases(Draw& draw) {
  Cases cases;
  const auto add = [&](const char* name, const Tensor& x) {
    const Shape c{x.shape()[-1]};
    cases.push_back({name,
                     {x, draw.normal(c), draw.normal(c), draw.normal(c), draw.uniform(c, 0.5, 2)},
                     [](Tensors& in) -> Tensors {
                       BatchNormState state = state_of(in, 3);
                       const auto out =
                           ops::batchnorm(in[0], in[1], in[2], Activation::none, state);
                       return {out.y, out.mean, out.inv_std, in[3], in[4]};
                     }});
  };
  add("the first far off", first_far_off(draw, {1300, 8}));
  add("far from zero", far_from_zero(draw, {5, 3, 3, 17}));
  for (const Shape& x : kNormShapes)
    for (Activation act : kFused) {
      const Shape c{x[-1]};
      cases.push_back({fmt::format("{} {}", x.str(), name_of(act)),
                       {draw.normal(x), draw.normal(c), draw.normal(c), draw.normal(c),
                        draw.uniform(c, 0.5, 2)},
                       [=](Tensors& in) -> Tensors {
                         BatchNormState state = state_of(in, 3);
                         const auto inference =
                             ops::batchnorm_inference(in[0], in[1], in[2], act, state);
                         const auto out = ops::batchnorm(in[0], in[1], in[2], act, state);
                         return {inference, out.y, out.mean, out.inv_std, in[3], in[4]};
                       }});
    }
  return cases;
}

// Inputs, statistics and outputs in f32. They are drawn again while some z is so close to zero that
// rounding could change its relu.
inline Tensors batchnorm_backward_inputs(Draw& draw, const Shape& x, Activation act,
                                         bool accumulate) {
  const Shape c{x[-1]};
  for (;;) {
    Tensors in{draw.normal(x), draw.normal(c), draw.normal(c), draw.normal(x)};
    BatchNormState state{.running_mean = Tensor::zeros(c, Dtype::f64),
                         .running_var = Tensor::zeros(c, Dtype::f64)};
    const auto normalized = [&](Activation a) {
      return ops::batchnorm(in[0].to(Dtype::f64), in[1].to(Dtype::f64), in[2].to(Dtype::f64), a,
                            state);
    };
    const auto z = doubles(normalized(Activation::none).y);
    if (std::ranges::any_of(z, [](double v) { return std::abs(v) < 1e-5; })) continue;
    const auto out = normalized(act);
    for (const Tensor& t : {out.y, out.mean, out.inv_std}) in.push_back(t.to(Dtype::f32));
    in.push_back(slot(draw, c, accumulate));
    in.push_back(slot(draw, c, accumulate));
    return in;
  }
}

inline Cases batchnorm_backward_cases(Draw& draw) {
  Cases cases;
  for (const Shape& x : kNormShapes)
    for (Activation act : kFused)
      for (bool accumulate : {false, true})
        cases.push_back(
            {fmt::format("{} {} accumulate {}", x.str(), name_of(act), accumulate),
             batchnorm_backward_inputs(draw, x, act, accumulate), [=](Tensors& in) -> Tensors {
               const Tensor dx =
                   ops::batchnorm_backward(in[0], in[1], in[2], {in[4], in[5], in[6]}, in[3], act,
                                           {in[7], accumulate}, {in[8], accumulate});
               return {dx, in[7], in[8]};
             }});
  return cases;
}

inline Cases layernorm_cases(Draw& draw) {
  Cases cases;
  cases.push_back({"far from zero",
                   {far_from_zero(draw, {17, 333}), draw.normal({333}), draw.normal({333})},
                   [](Tensors& in) -> Tensors {
                     const auto out = ops::layernorm(in[0], in[1], in[2], 1e-5);
                     return {out.y, out.mean, out.inv_std};
                   }});
  for (const Shape& x : kNormShapes)
    for (bool accumulate : {false, true}) {
      const Shape c{x[-1]};
      cases.push_back({fmt::format("{} accumulate {}", x.str(), accumulate),
                       {draw.normal(x), draw.normal(c), draw.normal(c), draw.normal(x),
                        slot(draw, c, accumulate), slot(draw, c, accumulate)},
                       [=](Tensors& in) -> Tensors {
                         const auto out = ops::layernorm(in[0], in[1], in[2], 1e-5);
                         const Tensor dx = ops::layernorm_backward(
                             in[0], in[1], out, in[3], {in[4], accumulate}, {in[5], accumulate});
                         return {out.y, out.mean, out.inv_std, dx, in[4], in[5]};
                       }});
    }
  return cases;
}

// One row, less than a block of rows, a block plus one row, several blocks. The spread of the
// logits ranges from small to so large that one probability is almost 1.
struct Sequences {
  int64_t samples, times, heads, size;
  double spread;
};
inline constexpr Sequences kSequences[] = {{0, 3, 2, 4, 1},  {2, 1, 3, 5, 1},    {1, 17, 1, 7, 1},
                                           {2, 33, 2, 8, 5}, {1, 64, 2, 16, 1},  {1, 65, 3, 3, 1},
                                           {2, 0, 1, 2, 1},  {1, 300, 2, 3, 0.1}};

inline Tensors attend(Tensors& in, Heads heads) {
  const ops::Attended out = ops::attention(in[0], heads);
  return {out.y, out.lse, ops::attention_backward(in[0], out, in[1], heads)};
}

inline Cases groupnorm_cases(Draw& draw) {
  Cases cases;
  const auto add = [&](const std::string& name, const Tensor& x, int64_t groups, bool accumulate) {
    const Shape c{x.shape()[-1]};
    cases.push_back({name,
                     {x, draw.normal(c), draw.normal(c), draw.normal(x.shape()),
                      slot(draw, c, accumulate), slot(draw, c, accumulate)},
                     [=](Tensors& in) -> Tensors {
                       const auto out = ops::groupnorm(in[0], groups, in[1], in[2], 1e-5);
                       const Tensor dx =
                           ops::groupnorm_backward(in[0], groups, in[1], out, in[3],
                                                   {in[4], accumulate}, {in[5], accumulate});
                       return {out.y, out.mean, out.inv_std, dx, in[4], in[5]};
                     }});
  };
  for (const Shape& x : {Shape{0, 2, 6}, Shape{3, 6}, Shape{2, 3, 5, 12}, Shape{3, 17, 17, 16}})
    for (int64_t groups : {1, 2})
      for (bool accumulate : {false, true})
        add(fmt::format("{} in {} groups, accumulate {}", x.str(), groups, accumulate),
            draw.normal(x), groups, accumulate);
  return cases;
}

inline Cases rmsnorm_cases(Draw& draw) {
  Cases cases;
  for (const Shape& x : kNormShapes)
    for (bool accumulate : {false, true}) {
      const Shape c{x[-1]};
      cases.push_back({fmt::format("{} accumulate {}", x.str(), accumulate),
                       {draw.normal(x), draw.normal(c), draw.normal(x), slot(draw, c, accumulate)},
                       [=](Tensors& in) -> Tensors {
                         const auto out = ops::rmsnorm(in[0], in[1], 1e-5);
                         const Tensor dx = ops::rmsnorm_backward(in[0], in[1], out.inv_rms, in[2],
                                                                 {in[3], accumulate});
                         return {out.y, out.inv_rms, dx, in[3]};
                       }});
    }
  return cases;
}

inline Cases swiglu_cases(Draw& draw) {
  Cases cases;
  for (int64_t rows : kRows)
    for (int64_t width : {17, 16}) {
      cases.push_back({fmt::format("{}x{}", rows, width),
                       {draw.uniform({rows, 2 * width}, -9, 9), draw.normal({rows, width})},
                       [](Tensors& in) -> Tensors {
                         return {ops::swiglu(in[0]), ops::swiglu_backward(in[0], in[1])};
                       }});
    }
  cases.push_back({"far from zero, NaN",
                   {Tensor::from<float>({-1e3f, 1e3f, NAN, 1, 1, 1}, {6}), draw.normal({3})},
                   [](Tensors& in) -> Tensors {
                     return {ops::swiglu(in[0]), ops::swiglu_backward(in[0], in[1])};
                   }});
  return cases;
}

inline Cases rotary_cases(Draw& draw) {
  struct Grouped {
    int64_t samples, times, size;
    GroupedHeads heads;
  };
  Cases cases;
  for (const Grouped& g : {Grouped{2, 3, 8, {4, 4}}, Grouped{1, 17, 6, {6, 2}},
                           Grouped{0, 3, 4, {2, 1}}, Grouped{3, 33, 16, {8, 1}}})
    cases.push_back(
        {fmt::format("{}x{} {} heads, {} of kv, of {}", g.samples, g.times, g.heads.count,
                     g.heads.kv, g.size),
         {draw.normal({g.samples, g.times, (g.heads.count + 2 * g.heads.kv) * g.size}),
          draw.normal({g.times, g.size}),
          draw.normal({g.samples, g.times, 3 * g.heads.count * g.size})},
         [=](Tensors& in) -> Tensors {
           return {ops::rotary(in[0], in[1], g.heads), ops::rotary_backward(in[2], in[1], g.heads)};
         }});
  return cases;
}

inline Cases attention_cases(Draw& draw) {
  Cases cases;
  for (const Sequences& s : kSequences)
    for (bool causal : {true, false}) {
      const int64_t width = s.heads * s.size;
      cases.push_back({fmt::format("{}x{} {} heads of {}, causal {}", s.samples, s.times, s.heads,
                                   s.size, causal),
                       {draw.uniform({s.samples, s.times, 3 * width}, -s.spread, s.spread),
                        draw.normal({s.samples, s.times, width})},
                       [=](Tensors& in) {
                         return attend(in, {s.heads, causal});
                       }});
    }
  Tensor lost = draw.normal({1, 65, 12});  // the last query; the gradients of all its keys are NaN
  std::fill_n(lost.mutable_data<float>() + 64 * 12, 4, NAN);
  cases.push_back({"NaN", {lost, draw.normal({1, 65, 4})}, [](Tensors& in) {
                     return attend(in, {2, true});
                   }});
  return cases;
}

inline Cases pool_cases(Draw& draw) {
  Cases cases;
  const Image pooled[] = {{2, 8, 8, 16, 0, {2, 2, 0}}, {3, 9, 7, 17, 0, {3, 2, 1}},
                          {1, 1, 1, 1, 0, {1, 1, 0}},  {0, 4, 4, 3, 0, {2, 2, 0}},
                          {2, 7, 7, 33, 0, {7, 7, 0}}, {1, 5, 5, 3, 0, {2, 3, 1}},
                          {1, 6, 6, 3, 0, {3, 1, 1}}};
  for (const Image& i : pooled) {
    const Shape y = ops::pool_shape("test", i.x(), i.window);
    // Few distinct values, so that windows have ties.
    Tensor x = draw.uniform(i.x(), 0, 4);
    for (float& v : x.mutable_values<float>()) v = std::floor(v);
    cases.push_back(
        {"max " + i.str(), {x, draw.normal(y)}, [=](Tensors& in) -> Tensors {
           const auto out = ops::max_pool(in[0], i.window);
           return {out.y, out.chosen, ops::max_pool_backward(out.chosen, in[1], i.window, i.x())};
         }});
    cases.push_back(
        {"avg " + i.str(), {draw.normal(i.x()), draw.normal(y)}, [=](Tensors& in) -> Tensors {
           return {ops::avg_pool(in[0], i.window), ops::avg_pool_backward(in[1], i.window, i.x())};
         }});
  }
  return cases;
}

inline Cases embedding_cases(Draw& draw) {
  Cases cases;
  for (int64_t rows : kRows)
    for (bool accumulate : {false, true})
      cases.push_back({fmt::format("rows {} accumulate {}", rows, accumulate),
                       {draw.ids({rows, 5}, 7), draw.normal({7, 17}), draw.normal({rows, 5, 17}),
                        slot(draw, {7, 17}, accumulate)},
                       [=](Tensors& in) -> Tensors {
                         const Tensor y = ops::embedding(in[0], in[1]);
                         ops::embedding_backward(in[0], in[2], {in[3], accumulate});
                         return {y, in[3]};
                       }});
  for (bool accumulate : {false, true})
    cases.push_back({fmt::format("rows 7 to 13 of 20, accumulate {}", accumulate),
                     {draw.ids({9, 5}, 20), draw.normal({7, 16}), draw.normal({9, 5, 16}),
                      slot(draw, {7, 16}, accumulate)},
                     [=](Tensors& in) -> Tensors {
                       const ops::TableRows rows{.first = 7, .all = 20};
                       const Tensor y = ops::embedding(in[0], in[1], rows);
                       ops::embedding_backward(in[0], in[2], {in[3], accumulate}, rows);
                       return {y, in[3]};
                     }});
  return cases;
}

// The second of two ranks, which has 20 of 33 labels.
inline Tensors loss_of_parts(Tensors& in) {
  const Tensor y = ops::stored(in[0]), others = ops::stored(in[2]);
  const Backend& backend = backend_for(y);
  const int64_t rows = y.shape()[0];
  const auto part_of = [&](const Tensor& logits, int64_t first) {
    Tensor part = Tensor::empty({rows, 2}, beside(y.dtype()), y.device());
    backend.cross_entropy_part(logits, in[1], first, part);
    return part;
  };
  const Tensor all = Tensor::empty({2, rows, 2}, beside(y.dtype()), y.device());
  all.flat(0, 2 * rows).copy_from(part_of(others, 0).view({2 * rows}));
  all.flat(2 * rows, 4 * rows).copy_from(part_of(y, 13).view({2 * rows}));
  Tensor d = Tensor::empty(y.shape(), y.dtype(), y.device());
  const Tensor loss = backend.cross_entropy_of_parts(y, in[1], 13, all, 7, d);
  return {loss, d, all};
}

inline Cases loss_cases(Draw& draw) {
  Cases cases;
  for (int64_t rows : kRows)
    cases.push_back({fmt::format("cross_entropy_of_parts {}", rows),
                     {draw.uniform({rows, 20}, 97, 103), draw.ids({rows}, 33),
                      draw.uniform({rows, 13}, 97, 103)},
                     loss_of_parts});
  for (int64_t rows : kRows) {
    cases.push_back({fmt::format("softmax_cross_entropy {}", rows),
                     {draw.uniform({rows, 33}, 197, 203), draw.ids({rows}, 33)},
                     [](Tensors& in) -> Tensors {
                       const Tensor y = ops::stored(in[0]);
                       Tensor d = Tensor::empty(y.shape(), y.dtype(), y.device());
                       const Tensor loss = backend_for(y).softmax_cross_entropy(y, in[1], 7, d);
                       return {loss, d};
                     }});
    cases.push_back({fmt::format("mse {}", rows),
                     {draw.normal({rows, 17}), draw.normal({rows, 17})},
                     [](Tensors& in) -> Tensors {
                       const Tensor y = ops::stored(in[0]);
                       Tensor d = Tensor::empty(y.shape(), y.dtype(), y.device());
                       const Tensor loss = backend_for(y).mse(y, in[1], 7, d);
                       return {loss, d};
                     }});
  }
  return cases;
}

// Parameters of these sizes in one call. `first` says if it is the first parameter's first step; it
// alternates.
using Counts = std::vector<int64_t>;
inline std::vector<SgdParam> sgd_params(const Tensors& in, bool momentum, bool first) {
  std::vector<SgdParam> params;
  for (size_t i = 0; i < in.size(); i += 3, first = !first)
    params.push_back({in[i], in[i + 1], momentum ? in[i + 2] : Tensor(), first});
  return params;
}
inline std::vector<AdamParam> adam_params(const Tensors& in, int64_t step) {
  std::vector<AdamParam> params;
  for (size_t i = 0; i < in.size(); i += 4, ++step)
    params.push_back({in[i], in[i + 1], in[i + 2], in[i + 3], step});
  return params;
}
inline Tensors sgd_inputs(Draw& draw, const Counts& counts) {
  Tensors in;
  for (int64_t n : counts)
    for (double low : {1.0, -0.5, 1.0}) in.push_back(draw.uniform({n}, low, low + 1));
  return in;
}
inline Tensors adam_inputs(Draw& draw, const Counts& counts) {
  Tensors in;
  for (int64_t n : counts)
    for (double low : {1.0, -0.5, 1.0, 0.01}) in.push_back(draw.uniform({n}, low, low + 1));
  return in;
}
// One parameter, several, and more than one GPU launch handles. Some are longer than a block's
// share.
inline const Counts kUpdates[] = {{0},           {1}, {3}, {17}, {1000, 0, 5, 16'384, 4097, 1},
                                  Counts(200, 7)};

inline Cases optimizer_cases(Draw& draw) {
  Cases cases;
  for (const Counts& counts : kUpdates) {
    const std::string sizes = fmt::format("{} from {}", counts.size(), counts[0]);
    for (int flags = 0; flags < 8; ++flags) {
      const bool first = flags & 1, momentum = flags & 2, nesterov = (flags & 4) && momentum;
      const SgdArgs args{0.1, momentum ? 0.9 : 0, nesterov ? 0 : 0.2, 0.01, nesterov};
      cases.push_back({fmt::format("sgd {} flags {}", sizes, flags), sgd_inputs(draw, counts),
                       [=](Tensors& in) -> Tensors {
                         std::vector<SgdParam> params = sgd_params(in, momentum, first);
                         backend_for(in[0]).sgd(params, args);
                         return in;
                       }});
    }
    for (int flags = 0; flags < 4; ++flags) {
      const bool decoupled = flags & 1, first = flags & 2;
      const AdamArgs args{0.01, 0.9, 0.999, 1e-8, 0.1, decoupled};
      cases.push_back({fmt::format("adam {} flags {}", sizes, flags), adam_inputs(draw, counts),
                       [=](Tensors& in) -> Tensors {
                         std::vector<AdamParam> params = adam_params(in, first ? 1 : 100);
                         backend_for(in[0]).adam(params, args);
                         return in;
                       }});
    }
  }
  return cases;
}

struct Family {
  const char* name;
  Cases (*cases)(Draw&);
};
inline const Family kFamilies[] = {
    {"matmul", matmul_cases},
    {"linear", linear_cases},
    {"linear_backward", linear_backward_cases},
    {"conv2d", conv2d_cases},
    {"conv2d_backward", conv2d_backward_cases},
    {"elementwise", elementwise_cases},
    {"batchnorm", batchnorm_cases},
    {"batchnorm_backward", batchnorm_backward_cases},
    {"layernorm", layernorm_cases},
    {"groupnorm", groupnorm_cases},
    {"rmsnorm", rmsnorm_cases},
    {"swiglu", swiglu_cases},
    {"rotary", rotary_cases},
    {"attention", attention_cases},
    {"pool", pool_cases},
    {"embedding", embedding_cases},
    {"loss", loss_cases},
    {"optimizer", optimizer_cases},
};

}  // namespace howmany::testing_support
