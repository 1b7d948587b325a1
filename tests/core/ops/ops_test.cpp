// SPDX-License-Identifier: Apache-2.0
// Argument errors of the checked functions, and their messages.
#include "core/ops/ops.h"
#include "tests/support/message_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace howmany {
namespace {

Tensor zeros(const Shape& shape, Dtype dtype = Dtype::f32) { return Tensor::zeros(shape, dtype); }

struct Refused {
  const char* message;
  std::function<void()> call;
};

void check(const std::vector<Refused>& list) {
  for (const Refused& r : list) {
    EXPECT_THAT(message_of<std::invalid_argument>([&] { r.call(); }),
                testing::HasSubstr(r.message));
  }
}

TEST(Ops, RefuseMatricesThatDoNotFit) {
  check({
      {"[matmul] inner sizes differ: a [2,4], b [3,5]",
       [] {
         ops::matmul(zeros({2, 4}), zeros({3, 5}));
       }},
      {"[matmul] inner sizes differ: a [2,4]^T, b [4,5]",
       [] {
         ops::matmul(zeros({2, 4}), zeros({4, 5}), true);
       }},
      {"[matmul] a has shape [2], expected 2 extents",
       [] {
         ops::matmul(zeros({2}), zeros({2, 2}));
       }},
      {"[matmul] a is i64, expected f32 or f64",
       [] {
         ops::matmul(zeros({2, 2}, Dtype::i64), zeros({2, 2}));
       }},
      {"[matmul] b is f64 [2,2], expected f32 [2,2]",
       [] {
         ops::matmul(zeros({2, 2}), zeros({2, 2}, Dtype::f64));
       }},
      {"[matmul] b is an empty handle",
       [] {
         ops::matmul(zeros({2, 2}), {});
       }},
      {"[linear] inner sizes differ: x [2,4], w [3,5]",
       [] {
         ops::linear(zeros({2, 4}), zeros({3, 5}), {}, Activation::none);
       }},
      {"[linear] bias is f32 [4], expected f32 [3]",
       [] {
         ops::linear(zeros({2, 4}), zeros({3, 4}), zeros({4}), Activation::none);
       }},
  });
}

TEST(Ops, RefuseHeadsThatDoNotFit) {
  const Tensor qkv = zeros({2, 5, 12});
  const ops::Attended out{zeros({2, 5, 4}), zeros({2, 2, 5})};
  check({
      {"[attention] qkv [2,5,12] is not [N,T,3 D] with D a multiple of 3 heads",
       [&] { ops::attention(qkv, {.count = 3}); }},
      {"[attention] qkv [2,5,10] is not [N,T,3 D]",
       [] {
         ops::attention(zeros({2, 5, 10}), {.count = 2});
       }},
      {"[attention] qkv [2,5,12] is not [N,T,3 D] with D a multiple of 0 heads",
       [&] { ops::attention(qkv, {.count = 0}); }},
      {"[attention] qkv has shape [5,12], expected 3 extents",
       [] {
         ops::attention(zeros({5, 12}), {.count = 2});
       }},
      {"[attention_backward] lse is f32 [2,2,5], expected f32 [2,1,5]",
       [&] { ops::attention_backward(qkv, out, out.y, {.count = 1}); }},
      {"[attention_backward] dy is f32 [2,5,12], expected f32 [2,5,4]",
       [&] { ops::attention_backward(qkv, out, qkv, {.count = 2}); }},
  });
}

TEST(Ops, AttentionCountsPairsThatAreNotMasked) {
  EXPECT_EQ(ops::attention_flop({2, 5, 12}, {2, false}), 2 * 5 * 5 * 4 * 4);
  EXPECT_EQ(ops::attention_flop({2, 5, 12}, {2, true}), 2 * 15 * 4 * 4);
}

TEST(Ops, RefuseGradientsThatDoNotFitAndWriteNothing) {
  Tensor dw = Tensor::full({3, 4}, 5), dbias = Tensor::full({4}, 5);
  const Tensor x = zeros({2, 4}), w = zeros({3, 4}), dy = zeros({2, 3});
  check({
      {"[linear_backward] dy is f32 [2,4], expected f32 [2,3]",
       [&] { ops::linear_backward(x, w, {}, x, Activation::none, true, {dw}, {}); }},
      {"[linear_backward] dbias is f32 [4], expected f32 [3]",
       [&] { ops::linear_backward(x, w, {}, dy, Activation::none, true, {dw}, {dbias}); }},
      {"[linear_backward] kept is an empty handle",
       [&] { ops::linear_backward(x, w, {}, dy, Activation::relu, true, {dw}, {}); }},
      {"[conv2d_backward] dw is f32 [3,4], expected f32 [1,1,1,1]",
       [&] {
         ops::conv2d_backward(zeros({1, 1, 1, 1}), zeros({1, 1, 1, 1}), zeros({1, 1, 1, 1}),
                              {1, 1, 0}, true, {dw}, {});
       }},
  });
  for (float v : dw.values<float>()) EXPECT_EQ(v, 5);
}

TEST(Ops, RefuseImagesThatDoNotFit) {
  const Tensor x = zeros({1, 5, 5, 2});
  check({
      {"[conv2d] x has shape [5,5], expected 4 extents",
       [] {
         ops::conv2d(zeros({5, 5}), zeros({1, 3, 3, 2}), {}, {3, 1, 1});
       }},
      {"[conv2d] w is f32 [1,3,3,4], expected f32 [1,3,3,2]",
       [&] {
         ops::conv2d(x, zeros({1, 3, 3, 4}), {}, {3, 1, 1});
       }},
      {"[conv2d] a window of 7 (padding 0) does not fit x [1,5,5,2]",
       [&] {
         ops::conv2d(x, zeros({1, 7, 7, 2}), {}, {7, 1, 0});
       }},
      {"[conv2d] window size 3, stride 0, padding 0",
       [&] {
         ops::conv2d(x, zeros({1, 3, 3, 2}), {}, {3, 0, 0});
       }},
      {"[max_pool] padding 2 is more than half of window 3",
       [&] {
         ops::max_pool(x, {3, 1, 2});
       }},
      {"[avg_pool_backward] dy is f32 [1,5,5,2], expected f32 [1,2,2,2]",
       [&] {
         ops::avg_pool_backward(x, {2, 2, 0}, x.shape());
       }},
      {"[max_pool_backward] chosen is f32 [1,2,2,2], expected i32 [1,2,2,2]",
       [&] {
         ops::max_pool_backward(zeros({1, 2, 2, 2}), zeros({1, 2, 2, 2}), {2, 2, 0}, x.shape());
       }},
  });
}

TEST(Ops, RefuseBadNormalisation) {
  BatchNormState state{.running_mean = zeros({3}), .running_var = Tensor::full({3}, 1)};
  check({
      {"[batchnorm] x [1,1,1,3] has one value per channel",
       [&] {
         ops::batchnorm(zeros({1, 1, 1, 3}), zeros({3}), zeros({3}), Activation::none, state);
       }},
      {"[batchnorm] running_mean is f32 [3], expected f32 [2]",
       [&] {
         ops::batchnorm(zeros({4, 2}), zeros({2}), zeros({2}), Activation::none, state);
       }},
      {"[batchnorm] gelu does not fuse with it",
       [&] {
         ops::batchnorm(zeros({4, 3}), zeros({3}), zeros({3}), Activation::gelu, state);
       }},
      {"[layernorm] scale is f32 [4], expected f32 [3]",
       [] {
         ops::layernorm(zeros({2, 3}), zeros({4}), zeros({3}), 1e-5);
       }},
  });
  for (float v : state.running_mean.values<float>()) EXPECT_EQ(v, 0);
}

TEST(Ops, RefuseTheRest) {
  const auto ids = [](int64_t id) { return Tensor::from<int64_t>({0, id}, {2}); };
  check({
      {"[embedding] id 1 is 7, outside [0, 7)",
       [&] {
         ops::embedding(ids(7), zeros({7, 2}));
       }},
      {"[embedding] id 1 is -1, outside [0, 7)",
       [&] {
         ops::embedding(ids(-1), zeros({7, 2}));
       }},
      {"[embedding] id must be i64",
       [] {
         ops::embedding(zeros({2}), zeros({7, 2}));
       }},
      {"[embedding_backward] dy f32 [2,3] does not fit ids [2] and dtable f32 [7,2]",
       [&] {
         ops::embedding_backward(ids(1), zeros({2, 3}), {zeros({7, 2})});
       }},
      {"[add] b is f32 [3,2], expected f32 [2,3]",
       [] {
         ops::add(zeros({2, 3}), zeros({3, 2}));
       }},
      {"[add] gelu does not fuse", [] { ops::add(zeros({2}), zeros({2}), Activation::gelu); }},
      {"[activation] x is an empty handle", [] { ops::activation({}, Activation::relu); }},
      {"[dropout] p is 1, expected 0 <= p < 1", [] { ops::dropout(zeros({2}), 1, {}); }},
      {"[axpy] x is f32 [2], expected f32 [3]",
       [] {
         Tensor y = zeros({3});
         ops::axpy(1, zeros({2}), y);
       }},
  });
}

}  // namespace
}  // namespace howmany
