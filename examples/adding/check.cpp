// SPDX-License-Identifier: Apache-2.0
// Runs the two examples of docs/ADDING_A_MODE_OR_BACKEND.md on two ranks (threads): the gradients
// of `summed` must be those of `single`, and `delayed` must add its latency to every call. Exits
// with 1 and a message if a check fails.
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "examples/adding/delayed.h"
#include "examples/adding/summed.h"
#include "parallel/launch/launch.h"

namespace howmany {
namespace {

constexpr int kRanks = 2;
constexpr double kTolerance = 1e-12;  // f64; the order of the sums differs

void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// A batch of 7 rows of an mlp with 5 inputs and 3 classes.
Batch whole_batch() {
  constexpr int64_t kRows = 7;
  std::vector<float> x;
  for (int i = 0; i < kRows * 5; ++i) x.push_back(std::sin(static_cast<float>(i)));
  const std::vector<int64_t> labels = {0, 1, 2, 0, 1, 2, 0};
  return {.x = Tensor::from<float>(x, {kRows, 5}),
          .y = Tensor::from<int64_t>(labels, {kRows}),
          .global_rows = kRows};
}

Batch rows_of(const Batch& batch, Share share) {
  const int64_t begin = share.begin(batch.global_rows), end = share.end(batch.global_rows);
  return {.x = batch.x.rows(begin, end),
          .y = batch.y.rows(begin, end),
          .global_rows = batch.global_rows,
          .first_row = begin};
}

ModeArgs arguments(Comm* comm) {
  return {.model = make_model("mlp:sizes=5-8-3"), .seed = 1, .dtype = Dtype::f64, .comm = comm};
}

void expect_same_gradients(Mode& mode, Mode& single) {
  const auto mine = mode.params(), wanted = single.params();
  expect(mine.size() == wanted.size(), "summed has other parameters than single");
  for (size_t i = 0; i < mine.size(); ++i) {
    const auto a = mine[i]->grad.values<double>(), b = wanted[i]->grad.values<double>();
    for (size_t k = 0; k < a.size(); ++k)
      expect(std::abs(a[k] - b[k]) <= kTolerance, "a gradient of summed differs from single");
  }
}

void check_summed() {
  const Batch batch = whole_batch();
  launch_threads(kRanks, [&](Comm& comm) {
    const auto mode = modes::summed(arguments(&comm));
    const auto single = make_mode("single", arguments(nullptr));
    const double loss = mode->step(rows_of(batch, mode->share())).value();
    expect(std::abs(loss - single->step(batch).value()) <= kTolerance,
           "the loss of summed differs from single");
    expect_same_gradients(*mode, *single);
  });
}

void check_delayed() {
  constexpr std::chrono::milliseconds kDelay(20);
  auto engines = comms::local_group(kRanks);
  std::vector<std::thread> ranks;
  std::vector<double> sums(kRanks), seconds(kRanks);
  for (size_t r = 0; r < kRanks; ++r)
    ranks.emplace_back([&, r] {
      Comm comm(comms::delayed(std::move(engines[r]), kDelay));
      Tensor t = Tensor::from<double>({static_cast<double>(r + 1)}, {1});
      const auto start = std::chrono::steady_clock::now();
      comm.all_reduce(t);
      seconds[r] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      sums[r] = t.values<double>()[0];
    });
  for (std::thread& rank : ranks) rank.join();
  for (size_t r = 0; r < kRanks; ++r) {
    expect(sums[r] == 3, "delayed: wrong sum");
    expect(seconds[r] >= std::chrono::duration<double>(kDelay).count(), "delayed: no delay");
  }
}

}  // namespace
}  // namespace howmany

int main() {
  try {
    howmany::check_summed();
    howmany::check_delayed();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "check: %s\n", error.what());
    return 1;
  }
  std::puts("summed has the gradients of single; delayed adds its latency");
}
