// SPDX-License-Identifier: Apache-2.0
// labels: threads
// timeout: 180
// Compares every backend with the reference in f64 on the same random inputs. A line in HM_BACKENDS
// adds a backend. Operations that it does not support are skipped, and the skip message names them.
#include "core/backends/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <set>
#include <thread>
#include <tuple>

#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/ops/ops.h"
#include "core/tensor/bf16.h"
#include "core/tensor/precision.h"
#include "tests/support/message_of.h"
#include "tests/support/op_cases.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using testing_support::Case;
using testing_support::close;
using testing_support::Draw;
using testing_support::Family;
using testing_support::fresh_seed;
using testing_support::home_of;
using testing_support::kFamilies;
using testing_support::largest_difference;
using testing_support::Tensors;

// Relative to the largest expected magnitude: several hundred f32 roundings in the longest sum
// here.
constexpr double kTolerance = 2e-5;

Tensors run(const Case& c, const Backend& backend, Dtype dtype) {
  const BackendScope scope(backend);
  Tensors in;
  for (const Tensor& t : c.inputs)
    in.push_back((t.dtype() == Dtype::f32 && dtype == Dtype::f64 ? t.to(dtype) : t.clone())
                     .to(home_of(backend)));
  return c.run(in);
}

// Changes each f32 input value by the relative amount `by`, up or down at random.
Case nudged(const Case& c, Draw& draw, double by) {
  Case near = c;
  for (Tensor& t : near.inputs) {
    if (t.dtype() != Dtype::f32) continue;
    const Tensor sign = draw.uniform(t.shape(), -1, 1);
    t = t.clone();
    const auto values = t.mutable_values<float>();
    for (size_t i = 0; i < values.size(); ++i)
      values[i] *= static_cast<float>(1 + std::copysign(by, sign.values<float>()[i]));
  }
  return near;
}

// Returns the backend's results, or nullopt and the reason if it does not support the operation.
std::optional<Tensors> run_if_supported(const Case& c, const Backend& backend, std::string& why) {
  try {
    return run(c, backend, Dtype::f32);
  } catch (const Error& e) {
    why = e.what();
    if (why.find("is not supported") == std::string::npos) throw;
    return std::nullopt;
  }
}

void skip_unless_available(const Backend& backend) {
  const std::string why = backend.unavailable();
  if (!why.empty()) GTEST_SKIP() << backend.name() << ": " << why;
}

class EveryBackend : public testing::TestWithParam<std::tuple<std::string_view, Family>> {
 protected:
  void SetUp() override { skip_unless_available(backend_named(std::get<0>(GetParam()))); }
};

TEST_P(EveryBackend, AgreesWithTheReference) {
  const auto& [name, family] = GetParam();
  const uint64_t seed = fresh_seed();
  SCOPED_TRACE(fmt::format("HOWMANY_TEST_SEED={}", seed));
  Draw draw(seed);
  std::set<std::string> skipped;
  for (const Case& c : family.cases(draw)) {
    SCOPED_TRACE(c.name);
    std::string why;
    const auto got = run_if_supported(c, backend_named(name), why);
    if (!got) {
      skipped.insert(why);
      continue;
    }
    const Backend& reference = backend_named("reference");
    const Tensors want = run(c, reference, Dtype::f64);
    // If a sum cancels, it is far smaller than its terms but has their rounding errors.
    const Tensors near = run(nudged(c, draw, kTolerance), reference, Dtype::f64);
    ASSERT_EQ(got->size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(close((*got)[i], want[i], kTolerance, largest_difference(near[i], want[i])))
          << "output " << i;
  }
  if (!skipped.empty()) GTEST_SKIP() << fmt::format("{}", fmt::join(skipped, "; "));
}

INSTANTIATE_TEST_SUITE_P(, EveryBackend,
                         testing::Combine(testing::ValuesIn(backend_names()),
                                          testing::ValuesIn(kFamilies)),
                         [](const auto& instance) {
                           return fmt::format("{}_{}", std::get<0>(instance.param),
                                              std::get<1>(instance.param).name);
                         });

// Inputs are representable in the short format, so products of inputs are those of f32. Two kinds
// of values are rounded: intermediates that are inputs of a product (a gradient after an
// activation, a softmax), and results that are stored in bf16. The latter are rounded twice if a
// result is stored before its bias or activation is applied.
struct Shortened {
  Precision precision;
  Family family;
  double tolerance;    // for results in f32
  double stored = 0;   // for results in bf16; 0: there are none
  double weights = 0;  // for weight gradients that are stored in bf16 on the way; 0: `tolerance`
  double nudge = 0;    // rounding of an intermediate: results may differ as much as the results for
                       // inputs that are changed by this relative amount
};
constexpr double kOfBf16 = 2e-2, kOfTf32 = 2e-3;  // several roundings, summed in a product
constexpr double kUnitOfBf16 = 0x1p-8, kUnitOfTf32 = 0x1p-11;  // largest relative rounding errors
constexpr double kRounded = 0x1p-8 + kTolerance;               // rounding to 8 bits
const Family& family_named(std::string_view name) {
  return *std::ranges::find(kFamilies, name, &Family::name);
}
std::vector<Shortened> shortened() {
  std::vector<Shortened> all;
  for (const char* exact : {"matmul", "linear", "conv2d", "conv2d_backward"})
    all.push_back({Precision::tf32, family_named(exact), kTolerance});
  for (const char* rounded : {"linear_backward", "attention"}) {
    all.push_back({.precision = Precision::tf32,
                   .family = family_named(rounded),
                   .tolerance = kOfTf32,
                   .nudge = kUnitOfTf32});
    all.push_back({.precision = Precision::bf16,
                   .family = family_named(rounded),
                   .tolerance = kOfBf16,
                   .stored = kOfBf16,
                   .nudge = kUnitOfBf16});
  }
  all.push_back({Precision::bf16, family_named("matmul"), kTolerance});
  for (const char* twice : {"linear", "conv2d"})
    all.push_back({Precision::bf16, family_named(twice), kTolerance, 2 * kRounded});
  all.push_back({Precision::bf16, family_named("conv2d_backward"), kTolerance, kRounded, kRounded});
  for (const char* once : {"elementwise", "batchnorm", "batchnorm_backward", "layernorm",
                           "groupnorm", "rmsnorm", "swiglu", "rotary", "pool", "embedding", "loss"})
    all.push_back({Precision::bf16, family_named(once), kTolerance, kRounded});
  return all;
}

Tensor shorter(const Tensor& t) {
  if (t.dtype() != Dtype::f32) return t;
  Tensor s = t.clone();
  for (float& v : s.mutable_values<float>()) v = from_bf16(to_bf16(v));
  return s;
}

class ShorterInputs : public testing::TestWithParam<Shortened> {
 protected:
  void SetUp() override {
    const std::vector<std::string_view> names = backend_names();
    if (std::ranges::find(names, "cuda") == names.end()) GTEST_SKIP() << "cuda is not built in";
    skip_unless_available(backend_named("cuda"));
  }
  size_t stored_ = 0;  // results in bf16
};

TEST_P(ShorterInputs, AgreeWithTheReference) {
  const uint64_t seed = fresh_seed();
  SCOPED_TRACE(fmt::format("HOWMANY_TEST_SEED={}", seed));
  Draw draw(seed);
  for (Case& c : GetParam().family.cases(draw)) {
    SCOPED_TRACE(c.name);
    for (Tensor& t : c.inputs) t = shorter(t);
    const Backend& reference = backend_named("reference");
    const Tensors want = run(c, reference, Dtype::f64);
    const Tensors near = run(nudged(c, draw, GetParam().nudge), reference, Dtype::f64);
    const PrecisionScope precision(GetParam().precision);
    const Tensors got = run(c, backend_named("cuda"), Dtype::f32);
    for (size_t i = 0; i < want.size(); ++i) {
      const bool half = got[i].dtype() == Dtype::bf16;
      const bool weights = GetParam().weights > 0 && got[i].shape() == c.inputs[1].shape();
      const double tolerance = half      ? GetParam().stored
                               : weights ? GetParam().weights
                                         : GetParam().tolerance;
      EXPECT_TRUE(close(got[i], want[i], tolerance, largest_difference(near[i], want[i])))
          << "output " << i;
      stored_ += half ? 1 : 0;
    }
  }
  EXPECT_EQ(stored_ > 0, GetParam().stored > 0);
}

INSTANTIATE_TEST_SUITE_P(, ShorterInputs, testing::ValuesIn(shortened()), [](const auto& instance) {
  return fmt::format("{}_{}", name_of(instance.param.precision), instance.param.family.name);
});

class ABackend : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { skip_unless_available(backend()); }
  const Backend& backend() const { return backend_named(GetParam()); }
  Tensor at_home(const Tensor& t) const { return t.to(home_of(backend())); }

  static Tensor like(const Tensor& t) { return Tensor::empty(t.shape(), t.dtype(), t.device()); }
  // Forward and backward of a small linear and a small convolution with shared weights.
  Tensors pass(const Tensor& x, const Tensor& w, const Tensor& image, const Tensor& kernel) const {
    const BackendScope scope(backend());
    const Tensor y = ops::linear(x, w, {}, Activation::relu);
    const Tensor dw = like(w), dkernel = like(kernel);
    const Tensor dx = ops::linear_backward(x, w, y, y, Activation::relu, true, {dw}, {});
    const Window window{3, 1, 1};
    const Tensor z = ops::conv2d(image, kernel, {}, window);
    const Tensor dimage = ops::conv2d_backward(image, kernel, z, window, true, {dkernel}, {});
    return {y, dw, dx, z, dkernel, dimage};
  }
};
INSTANTIATE_TEST_SUITE_P(, ABackend, testing::ValuesIn(backend_names()),
                         [](const auto& instance) { return std::string(instance.param); });

// A backend may cache packed weights, but not after the weights change.
TEST_P(ABackend, FollowsWeightsThatChange) {
  Draw draw(1);
  const Tensor x = at_home(draw.normal({17, 33})), image = at_home(draw.normal({2, 8, 8, 16}));
  const Tensor all = at_home(draw.normal({3 * 17 * 33}));
  const Tensor all_kernels = at_home(draw.normal({2 * 16 * 9 * 16}));
  for (int part : {0, 1, 2, 0}) {  // neighbours in one storage, as in a gradient bucket
    Tensor w = all.flat(part * 17 * 33, (part + 1) * 17 * 33).view({17, 33});
    const int64_t size = 16 * 9 * 16, at = part % 2 * size;
    Tensor kernel = all_kernels.flat(at, at + size).view({16, 3, 3, 16});
    for (int change = 0; change < 2; ++change) {
      const Tensors got = pass(x, w, image, kernel);
      const Tensors want = pass(x.clone(), w.clone(), image.clone(), kernel.clone());
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(close(got[i], want[i], kTolerance)) << "part " << part << " output " << i;
      ops::axpy(0.5, at_home(draw.normal(w.shape())), w);
      ops::axpy(0.5, at_home(draw.normal(kernel.shape())), kernel);
    }
  }
}

TEST_P(ABackend, ServesThreadsThatShareWeights) {
  Draw draw(2);
  const Tensor w = at_home(draw.normal({17, 33})), kernel = at_home(draw.normal({16, 3, 3, 16}));
  Tensors xs, images;
  std::vector<Tensors> got(3);
  for (size_t i = 0; i < got.size(); ++i) {
    xs.push_back(at_home(draw.normal({5, 33})));
    images.push_back(at_home(draw.normal({1, 6, 6, 16})));
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < got.size(); ++i)
    threads.emplace_back([&, i] { got[i] = pass(xs[i], w, images[i], kernel); });
  for (std::thread& t : threads) t.join();
  for (size_t i = 0; i < got.size(); ++i) {
    const Tensors want = pass(xs[i], w, images[i], kernel);
    for (size_t k = 0; k < want.size(); ++k)
      EXPECT_TRUE(close(got[i][k], want[k], kTolerance)) << "thread " << i << " output " << k;
  }
}

TEST_P(ABackend, UpdatesManyParametersAtOnce) {
  using testing_support::adam_params;
  Draw draw(fresh_seed());
  Tensors all, each;
  for (const Tensor& t : testing_support::adam_inputs(draw, {1000, 0, 33, 40'000, 7})) {
    all.push_back(at_home(t.clone()));
    each.push_back(at_home(t.clone()));
  }
  std::vector<AdamParam> together = adam_params(all, 3), alone = adam_params(each, 3);
  const AdamArgs args{.lr = 0.01, .weight_decay = 0.1};
  backend().adam(together, args);
  for (AdamParam& p : alone) backend().adam({&p, 1}, args);
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(testing_support::doubles(all[i]), testing_support::doubles(each[i])) << i;
  backend().adam({}, args);  // nothing to do
  backend().sgd({}, {.lr = 1});
}

TEST(Backend, IsFoundByName) {
  EXPECT_EQ(backend_named("reference").name(), "reference");
  EXPECT_THAT(message_of<std::invalid_argument>([&] { backend_named("referense"); }),
              testing::HasSubstr("[backend] unknown backend 'referense', did you mean "
                                 "'reference'? (known: reference"));
}

std::string_view fastest_on(DeviceType device) {
  std::string_view last;
  for (const std::string_view name : backend_names())
    if (backend_named(name).device_type() == device) last = name;
  return last;
}

TEST(Backend, ScopeAppliesToItsThread) {
  const Tensor x = Tensor::zeros({1}), precise = Tensor::zeros({1}, Dtype::f64);
  const std::string_view otherwise = backend_for(x).name();
  EXPECT_EQ(otherwise, fastest_on(DeviceType::cpu));
  {
    const BackendScope scope(backend_named("reference"));
    EXPECT_EQ(backend_for(x).name(), "reference");
    std::string_view elsewhere;
    std::thread([&] { elsewhere = backend_for(x).name(); }).join();
    EXPECT_EQ(elsewhere, otherwise);
  }
  EXPECT_EQ(backend_for(x).name(), otherwise);
  EXPECT_EQ(backend_for(precise).name(), "reference");
}

// The refusal of a precision by one CPU, or "".
std::string refusal(Precision precision, std::string_view kernels = {}) {
  try {
    check_precision(precision, std::vector{Device{DeviceType::cpu, 3}}, kernels);
    return "";
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

TEST(Backend, PrecisionNeedsADeviceThatHasIt) {
  const std::vector<Device> mixed = {{DeviceType::cpu, 3}, {DeviceType::cuda, 0}};
  EXPECT_NO_THROW(check_precision(Precision::bf16, mixed));
  EXPECT_NO_THROW(check_precision(Precision::tf32, mixed));
  EXPECT_EQ(refusal(Precision::f32), "");
  EXPECT_EQ(refusal(Precision::tf32), "precision tf32 needs a GPU, and there is none among cpu:3");
  EXPECT_EQ(refusal(Precision::bf16, "reference"),
            "precision bf16 needs a GPU or a CPU with AVX512-BF16, and there is none among cpu:3 "
            "with kernels reference");
  const bool has_it = backend_named(fastest_on(DeviceType::cpu)).computes_in(Precision::bf16);
  EXPECT_EQ(refusal(Precision::bf16).empty(), has_it);
}

TEST(Backend, CpusStoreF32InAnyPrecision) {
  const PrecisionScope scope(Precision::bf16);
  EXPECT_EQ(stored_dtype(Dtype::f32, Device{}), Dtype::f32);
  EXPECT_EQ(stored_dtype(Dtype::f64, Device{}), Dtype::f64);
  EXPECT_EQ(stored_on_gpus(Dtype::f32), Dtype::bf16);
  EXPECT_EQ(stored_on_gpus(Dtype::f64), Dtype::f64);
}

TEST(Backend, StoresBf16OnGpusAlone) {
  for (const std::string_view name : backend_names())
    EXPECT_EQ(backend_named(name).supports(Dtype::bf16), name == "cuda");
  const Tensor x = Tensor::zeros({2, 3}, Dtype::bf16);
  EXPECT_EQ(message_of<std::invalid_argument>([&] { ops::activation(x, Activation::relu); }),
            "[activation] x is bf16, expected f32 or f64");
  EXPECT_THROW(backend_for(x), std::invalid_argument);
}

TEST(Backend, NamesUnsupportedOperations) {
  class Bare : public Backend {
    std::string_view name() const override { return "bare"; }
    DeviceType device_type() const override { return DeviceType::cpu; }
    bool supports(Dtype) const override { return true; }
  };
  const Bare bare;
  const BackendScope scope(bare);
  EXPECT_EQ(message_of<Error>([&] {
              ops::layernorm(Tensor::zeros({2, 3}), Tensor::zeros({3}), Tensor::zeros({3}), 1e-5);
            }),
            "[bare] layernorm is not supported");
}

}  // namespace
}  // namespace howmany
