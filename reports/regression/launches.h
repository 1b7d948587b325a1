// SPDX-License-Identifier: Apache-2.0
// The launches of one side of a gate, collected in a suite. A sample is the best repetition of one
// launch. Its index is the block, which pairs the sides. Values only; safe from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "reports/regression/metric.h"
#include "reports/regression/suite.h"

namespace howmany::reports {

// Adds the best repetition of each metric of `launch`, or the median if neither direction is
// better.
void add_launch(Suite& side, const Suite& launch, int64_t block, const MetricKinds& kinds = {});
// Returns the samples of blocks [first, last).
Suite blocks_of(const Suite& side, int64_t first, int64_t last);
// Returns Google Benchmark JSON of a suite, which `howmany compare` pairs again.
std::string bench_json(const Suite& suite);

}  // namespace howmany::reports
