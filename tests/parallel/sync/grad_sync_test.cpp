// SPDX-License-Identifier: Apache-2.0
#include "parallel/sync/grad_sync.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/tensor/rng.h"
#include "parallel/launch/launch.h"

namespace howmany {
namespace {

std::vector<Param> make_params(const std::vector<Shape>& shapes, Dtype dtype = Dtype::f32) {
  std::vector<Param> params(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    params[i].name = fmt::format("p{}", i);
    params[i].shape = shapes[i];
    params[i].value = Tensor::zeros(shapes[i], dtype);
    params[i].grad = Tensor::zeros(shapes[i], dtype);
  }
  return params;
}

std::vector<Param*> pointers(std::vector<Param>& params) {
  std::vector<Param*> all;
  for (Param& p : params) all.push_back(&p);
  return all;
}

// A small integer, so that sums are exact.
float gradient(int rank, int step, size_t param, int64_t i) {
  return static_cast<float>((rank * 5 + step * 3 + static_cast<int>(param) + i) % 13);
}

void fill(Param& p, int rank, int step, size_t index) {
  for (int64_t i = 0; i < p.grad.numel(); ++i)
    p.grad.mutable_data<float>()[i] = gradient(rank, step, index, i);
  p.has_grad = true;
}

double finish(GradSync& sync, double loss) {
  return sync.finish(Tensor::full({1}, loss, Dtype::f64)).value();
}

const std::vector<Shape> kShapes = {{3, 5}, {7}, {1}, {40, 30}, {0}, {64}, {11, 2}};

struct Case {
  int world;
  bool bucketed;
  int64_t bucket_bytes;
};
class GradSyncCase : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    GradSync, GradSyncCase,
    ::testing::Values(Case{1, true, 25 << 20}, Case{2, false, 1}, Case{2, true, 25 << 20},
                      Case{2, true, 1}, Case{3, true, 100}, Case{4, true, 300}, Case{4, false, 1}),
    [](const auto& c) {
      return fmt::format("world{}_{}_{}", c.param.world, c.param.bucketed ? "bucketed" : "inline",
                         c.param.bucket_bytes);
    });

TEST_P(GradSyncCase, LeavesTheSumOverRanksWhateverBecomesReadyFirst) {
  const auto [world, bucketed, bytes] = GetParam();
  launch_threads(world, [&, world = world, bucketed = bucketed, bytes = bytes](Comm& comm) {
    auto params = make_params(kShapes);
    const auto all = pointers(params);
    const auto sync = make_grad_sync(comm, all, {bucketed, bytes, bytes});
    for (int step = 0; step < 6; ++step) {
      zero_grads(all);
      // With buckets, ranks may have different orders; without, they must agree. p5 gets no
      // gradient.
      const auto seed = static_cast<uint64_t>(step * 10 + (bucketed ? comm.rank() : 0));
      for (const int64_t i : permutation(static_cast<int64_t>(params.size()), Rng(seed))) {
        const auto index = static_cast<size_t>(i);
        if (index == 5) continue;
        fill(params[index], comm.rank(), step, index);
        sync->ready(params[index]);
      }
      EXPECT_EQ(finish(*sync, comm.rank() + 0.5), world * (world - 1) / 2 + 0.5 * world);
      for (size_t p = 0; p < params.size(); ++p) {
        ASSERT_TRUE(params[p].has_grad);
        for (int64_t i = 0; i < params[p].grad.numel(); ++i) {
          float sum = 0;
          for (int r = 0; r < world && p != 5; ++r) sum += gradient(r, step, p, i);
          ASSERT_EQ(params[p].grad.data<float>()[i], sum)
              << "step " << step << " " << params[p].name << " element " << i;
        }
      }
    }
  });
}

TEST_P(GradSyncCase, GivesEveryRankTheSameBits) {
  const auto [world, bucketed, bytes] = GetParam();
  launch_threads(world, [&, bucketed = bucketed, bytes = bytes](Comm& comm) {
    auto params = make_params({{1001}, {17, 3}});
    const auto sync = make_grad_sync(comm, pointers(params), {bucketed, bytes, bytes});
    for (Param& p : params) {
      fill_normal(p.grad, 0, 1, Rng(static_cast<uint64_t>(comm.rank()), stream_of(p.name)));
      p.has_grad = true;
      sync->ready(p);
    }
    finish(*sync, 0);
    for (const Param& p : params) {
      Tensor first = p.grad.clone();
      comm.broadcast(first, 0);
      EXPECT_EQ(std::memcmp(first.raw(), p.grad.raw(), static_cast<size_t>(first.bytes())), 0);
    }
  });
}

TEST(GradSync, SumsOverEveryBackend) {
  for (const std::string_view backend : thread_comm_names(2))
    launch_threads(
        2,
        [](Comm& comm) {
          auto params = make_params(kShapes);
          const auto sync = make_grad_sync(comm, pointers(params), {.bucket_bytes = 300});
          fill(params[3], comm.rank(), 0, 3);
          sync->ready(params[3]);
          EXPECT_EQ(finish(*sync, 1), 2);
          EXPECT_EQ(params[3].grad.data<float>()[7], gradient(0, 0, 3, 7) + gradient(1, 0, 3, 7));
        },
        backend);
}

TEST(GradSync, TellsHowManyExchangesReadyGradientsSetOff) {
  launch_threads(2, [](Comm& comm) {
    auto params = make_params({{64}, {64}, {64}, {64}});
    Param *const a = &params[0], *const b = &params[1], *const c = &params[2],
                 *const d = &params[3];
    const auto of = [](const GradSync& sync, const std::vector<Param*>& ready) {
      return sync.exchanges(ready);
    };
    const auto one_by_one = make_grad_sync(comm, pointers(params), {.bucketed = false});
    EXPECT_EQ(of(*one_by_one, {d, b}), 2);
    const auto sync =
        make_grad_sync(comm, pointers(params), {.bucket_bytes = 512, .first_bucket_bytes = 256});
    EXPECT_EQ(of(*sync, {}), 0);
    EXPECT_EQ(of(*sync, {d}), 1);
    EXPECT_EQ(of(*sync, {c, b}), 0) << "the first bucket goes first";
    EXPECT_EQ(of(*sync, {d, c}), 1);
    EXPECT_EQ(of(*sync, {d, c, b}), 2);
    EXPECT_EQ(of(*sync, {d, c, b, a}), 2) << "the last waits for the loss";
    auto others = make_params({{64}});
    EXPECT_THROW(of(*sync, pointers(others)), std::invalid_argument);
  });
  launch_threads(1, [](Comm& alone) {
    auto params = make_params({{64}});
    EXPECT_EQ(make_grad_sync(alone, pointers(params), {})->exchanges(pointers(params)), 0);
  });
}

TEST(GradSync, KeepsGradientsThatAreThereAlready) {
  launch_threads(2, [](Comm& comm) {
    auto params = make_params({{4}, {5}});
    fill(params[1], 0, 0, 1);
    const auto sync = make_grad_sync(comm, pointers(params), {});
    for (int64_t i = 0; i < 5; ++i)
      EXPECT_EQ(params[1].grad.data<float>()[i], gradient(0, 0, 1, i));
    EXPECT_EQ(params[1].grad.shape(), Shape({5}));
    EXPECT_TRUE(params[0].grad.shares_storage_with(params[1].grad)) << "one bucket holds both";
  });
}

TEST(GradSync, EndsBucketsAtTheParameterThatReachesTheirSize) {
  launch_threads(2, [](Comm& comm) {
    auto params = make_params({{64}, {64}, {64}, {64}, {64}});  // 256 bytes each
    const auto sync =
        make_grad_sync(comm, pointers(params), {.bucket_bytes = 300, .first_bucket_bytes = 100});
    const auto together = [&](int a, int b) {
      return params[static_cast<size_t>(a)].grad.shares_storage_with(
          params[static_cast<size_t>(b)].grad);
    };
    EXPECT_FALSE(together(4, 3));
    EXPECT_TRUE(together(3, 2));
    EXPECT_FALSE(together(2, 1));
    EXPECT_TRUE(together(1, 0));
  });
}

TEST(GradSync, AloneCopiesNothing) {
  launch_threads(1, [](Comm& comm) {
    auto params = make_params({{4}, {5}});
    const Tensor before = params[0].grad;
    const auto sync = make_grad_sync(comm, pointers(params), {});
    sync->ready(params[0]);
    EXPECT_EQ(finish(*sync, 0.1), 0.1);
    EXPECT_TRUE(params[0].grad.shares_storage_with(before));
    EXPECT_FALSE(params[0].grad.shares_storage_with(params[1].grad));
  });
}

TEST(GradSync, SumsTheLossOfAModelWithoutParameters) {
  launch_threads(3, [](Comm& comm) {
    const auto sync = make_grad_sync(comm, {}, {});
    EXPECT_EQ(finish(*sync, 0.25), 0.75);
  });
}

TEST(GradSync, RefusesWhatItCannotSum) {
  launch_threads(2, [](Comm& comm) {
    auto params = make_params({{4}, {5}});
    params[1].grad = Tensor::zeros({5}, Dtype::f64);
    EXPECT_THROW(make_grad_sync(comm, pointers(params), {}), std::invalid_argument);
    params[1].grad = Tensor();
    EXPECT_THROW(make_grad_sync(comm, pointers(params), {}), std::invalid_argument);
    params[1].grad = Tensor::zeros({5});
    EXPECT_THROW(make_grad_sync(comm, pointers(params), {.bucket_bytes = 0}),
                 std::invalid_argument);

    const auto sync = make_grad_sync(comm, pointers(params), {});
    auto strangers = make_params({{4}});
    EXPECT_THROW(sync->ready(strangers[0]), std::invalid_argument);
    params[0].has_grad = true;
    sync->ready(params[0]);
    EXPECT_THROW(sync->ready(params[0]), std::invalid_argument);
    params[1].grad = Tensor::zeros({5});
    EXPECT_THROW(sync->ready(params[1]), std::invalid_argument) << "no longer in its bucket";
  });
}

TEST(GradSync, FailsWithThePeer) {
  EXPECT_THROW(launch_threads(2,
                              [](Comm& comm) {
                                auto params = make_params({{4}, {5}});
                                const auto sync = make_grad_sync(comm, pointers(params), {});
                                if (comm.rank() == 1) throw std::logic_error("no backward today");
                                EXPECT_THROW(finish(*sync, 0), CommError);
                              }),
               std::logic_error);
}

}  // namespace
}  // namespace howmany
