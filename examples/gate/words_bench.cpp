// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include "words.h"

static void BM_Split(benchmark::State& state) {
  std::string text = "word";
  for (int i = 1; i < state.range(0); ++i) text += " word";
  for (auto _ : state) benchmark::DoNotOptimize(split(text));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Split)->Arg(10)->Arg(1000);

BENCHMARK_MAIN();
