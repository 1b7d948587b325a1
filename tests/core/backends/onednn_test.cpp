// SPDX-License-Identifier: Apache-2.0
// Behavior specific to this backend: bf16, Winograd's convolution for large shapes, primitives and
// packed weights cached between calls, several teams at once.
// labels: threads
#include <gtest/gtest.h>
#include <omp.h>

#include <array>
#include <cmath>
#include <limits>
#include <thread>

#include "core/base/error.h"
#include "core/ops/ops.h"
#include "core/tensor/storage.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using testing_support::close;
using testing_support::Draw;
using testing_support::fresh_seed;

using Tensors = std::vector<Tensor>;

bool built_in() {
  const auto names = backend_names();
  return std::ranges::find(names, "onednn") != names.end();
}

class OneDnn : public testing::Test {
 protected:
  void SetUp() override {
    if (!built_in()) GTEST_SKIP() << "built without oneDNN";
  }
};

Tensors conv(const char* backend, const Tensor& x, const Tensor& w, Window window, bool add) {
  const BackendScope scope(backend_named(backend));
  const Tensor y = ops::conv2d(x, w, {}, window);
  const Tensor dw = Tensor::full(w.shape(), 1, x.dtype());
  const Tensor dx = ops::conv2d_backward(x, w, y, window, true, {dw, add}, {});
  return {y, dx, dw};
}

// [4,17,14,32] has 80 tiles of 4x4 outputs. The last tiles of rows and columns are partly outside.
TEST_F(OneDnn, LargeConvolutionsAgreeWithTheReference) {
  const uint64_t seed = fresh_seed();
  SCOPED_TRACE(fmt::format("HOWMANY_TEST_SEED={}", seed));
  Draw draw(seed);
  for (const Window window : {Window{3, 1, 1}, Window{3, 1, 0}, Window{3, 2, 1}, Window{5, 1, 2}}) {
    const Tensor x = draw.normal({4, 17, 14, 32}),
                 w = draw.normal({48, window.size, window.size, 32});
    for (const bool add : {false, true}) {
      const Tensors got = conv("onednn", x, w, window, add);
      const Tensors want = conv("reference", x.to(Dtype::f64), w.to(Dtype::f64), window, add);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(close(got[i], want[i], 2e-5))
            << fmt::format("size {} stride {} padding {} output {}", window.size, window.stride,
                           window.padding, i);
    }
  }
}

double sum_of_squares(const Tensor& t) {
  const Tensor whole = t.to(Dtype::f64);
  double sum = 0;
  for (const double v : whole.values<double>()) sum += v * v;
  return sum;
}

// The relative difference of all elements together.
double distance(const Tensor& got, const Tensor& want) {
  Tensor off = got.to(Dtype::f64).clone();
  ops::axpy(-1, want.to(Dtype::f64), off);
  return std::sqrt(sum_of_squares(off) / sum_of_squares(want));
}

Tensor in_bf16(const Tensor& t) { return t.to(Dtype::bf16).to(Dtype::f32).to(Dtype::f64); }

// y, dx, dw and dbias of a linear layer.
Tensors linear(const char* backend, const Tensor& x, const Tensor& w, const Tensor& dy, bool add) {
  const BackendScope scope(backend_named(backend));
  const Tensor bias = Tensor::full({w.shape()[0]}, 0.5, x.dtype());
  const Tensor y = ops::linear(x, w, bias, Activation::none);
  const Tensor dw = Tensor::full(w.shape(), 1, x.dtype()),
               dbias = Tensor::zeros(bias.shape(), x.dtype());
  const Tensor dx =
      ops::linear_backward(x, w, y, dy, Activation::none, true, {dw, add}, {dbias, false});
  return {y, dx, dw, dbias};
}

// With inputs rounded beforehand, only the order of f32 sums differs.
TEST_F(OneDnn, Bf16RoundsOnlyInputsOfProducts) {
  if (!backend_named("onednn").computes_in(Precision::bf16)) GTEST_SKIP() << "no AVX512-BF16";
  const uint64_t seed = fresh_seed();
  SCOPED_TRACE(fmt::format("HOWMANY_TEST_SEED={}", seed));
  Draw draw(seed);
  const PrecisionScope precision(Precision::bf16);
  for (const auto& [rows, in, out] :
       {std::array{33, 17, 9}, {1, 64, 5}, {130, 1, 3}, {64, 50, 257}}) {
    const Tensor x = draw.normal({rows, in}), w = draw.normal({out, in}),
                 dy = draw.normal({rows, out});
    for (const bool add : {false, true}) {
      const Tensors got = linear("onednn", x, w, dy, add);
      const Tensors want = linear("reference", in_bf16(x), in_bf16(w), in_bf16(dy), add);
      const Tensors exact =
          linear("reference", x.to(Dtype::f64), w.to(Dtype::f64), dy.to(Dtype::f64), add);
      for (size_t i = 0; i < 3; ++i) EXPECT_LT(distance(got[i], want[i]), 1e-5) << i << " " << rows;
      EXPECT_LT(distance(got[3], exact[3]), 1e-5);  // a sum, not a product
      EXPECT_GT(distance(got[0], exact[0]), 1e-5) << "not rounded";
    }
  }
  for (const Window window : {Window{3, 2, 1}, Window{5, 1, 2}, Window{1, 1, 0}, Window{1, 2, 0}}) {
    for (const int channels : {3, 16}) {
      const Tensor x = draw.normal({2, 9, 8, channels}),
                   w = draw.normal({8, window.size, window.size, channels});
      for (const bool add : {false, true}) {
        const Tensors got = conv("onednn", x, w, window, add);
        const Tensors want = conv("reference", x.to(Dtype::f64), w.to(Dtype::f64), window, add);
        for (size_t i = 0; i < want.size(); ++i) {
          EXPECT_LT(distance(got[i], want[i]), 1e-2) << window.size << channels << i;
          EXPECT_GT(distance(got[i], want[i]), 1e-5) << "not rounded";
        }
      }
    }
  }
}

TEST_F(OneDnn, Bf16CopiesFollowTheirWeights) {
  if (!backend_named("onednn").computes_in(Precision::bf16)) GTEST_SKIP() << "no AVX512-BF16";
  const PrecisionScope precision(Precision::bf16);
  const BackendScope scope(backend_named("onednn"));
  const Tensor x = Tensor::full({1, 2}, 1);
  Tensor w = Tensor::full({1, 2}, 1);
  const auto y = [&] { return ops::linear(x, w, {}, Activation::none).item(); };
  EXPECT_EQ(y(), 2);
  EXPECT_EQ(y(), 2);
  w.mutable_data<float>()[0] = 5;
  EXPECT_EQ(y(), 6);
}

// Uses teams, because the scratch memory of their members is adjacent.
TEST_F(OneDnn, StridedConvolutionsStayInBounds) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer does not see how libgomp's teams synchronise";
#endif
  const int threads = omp_get_max_threads();
  const Window window{1, 2, 0};
  Draw draw(fresh_seed());
  for (const int64_t channels : {1, 3, 4, 5, 7, 12}) {
    const Tensor x = draw.normal({4, 32, 32, channels}), w = draw.normal({8, 1, 1, channels});
    const Tensors want = conv("reference", x.to(Dtype::f64), w.to(Dtype::f64), window, false);
    for (const int team : {1, 2, 4}) {
      omp_set_num_threads(team);
      for (int again = 0; again < 20; ++again)
        EXPECT_TRUE(close(conv("onednn", x, w, window, false)[2], want[2], 2e-5))
            << channels << " channels, team of " << team;
    }
    omp_set_num_threads(threads);
  }
}

TEST_F(OneDnn, FusedReluKeepsNaN) {
  Tensor x = Tensor::full({2, 3}, 1);
  x.mutable_data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  const BackendScope scope(backend_named("onednn"));
  const Tensor y = ops::linear(x, Tensor::full({4, 3}, 1), {}, Activation::relu);
  EXPECT_TRUE(std::isnan(y.data<float>()[0]));
  EXPECT_EQ(y.data<float>()[7], 3);
}

// Scratch memory and reordered copies come from the storage pool and return to it.
TEST_F(OneDnn, RepeatedCallsTakeNoMoreMemory) {
  Draw draw(1);
  const Tensor x = draw.normal({4, 16, 16, 32}), w = draw.normal({32, 3, 3, 32});
  const auto bytes = [] { return memory_use().in_use + memory_use().cached; };
  // The second call may still allocate, if the first one's scratch memory became a packed weight.
  for (int i = 0; i < 2; ++i) conv("onednn", x, w, {3, 1, 1}, false);
  const int64_t settled = bytes();
  for (int i = 0; i < 3; ++i) conv("onednn", x, w, {3, 1, 1}, false);
  EXPECT_EQ(bytes(), settled);
}

// A primitive is created for one team size. Threads with other team sizes must not run it.
TEST_F(OneDnn, TeamsOfDifferentSizesAgree) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer does not see how libgomp's teams synchronise";
#endif
  Draw draw(2);
  const Tensor x = draw.normal({4, 16, 16, 32}), w = draw.normal({32, 3, 3, 32});
  const Tensor rows = draw.normal({64, 300}), weights = draw.normal({200, 300});
  std::vector<Tensors> got(3);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < got.size(); ++i)
    threads.emplace_back([&, i] {
      omp_set_num_threads(static_cast<int>(i) + 1);
      got[i] = conv("onednn", x, w, {3, 1, 1}, false);
      got[i].push_back(ops::linear(rows, weights, {}, Activation::gelu));
    });
  for (std::thread& t : threads) t.join();
  for (size_t i = 1; i < got.size(); ++i)
    for (size_t k = 0; k < got[0].size(); ++k)
      EXPECT_TRUE(close(got[i][k], got[0][k], 2e-5)) << "team of " << i + 1 << " output " << k;
}

}  // namespace
}  // namespace howmany
