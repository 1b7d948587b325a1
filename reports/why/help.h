// SPDX-License-Identifier: Apache-2.0
// Changes that would shorten a step, each with the seconds that it would save.
//
// Replayed. The recorded steps (Mode::kSynced) with one thing changed: buckets start when their
//   gradients are ready and follow each other on one stream; backward ends at the end of the last.
//   The time of a bucket of other bytes follows a line through the recorded ones.
// Measured. By steps that ran so: kNarrow, kBf16 (--try).
// Only what applies, is above 2 % of the step and above twice its error. The best first.
// Thread safety. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "reports/why/parts.h"

namespace howmany::reports {

struct Help {
  std::string what;   // "bf16_gradients": more_workers, persistent_workers, larger_batch,
                      // fewer_buckets, more_buckets, bucket_view, static_graph, bf16_gradients,
                      // fewer_threads, faster_link, no_find_unused, less_outside, equal_ranks
  std::string paste;  // a line to paste, or a sentence
  double gain = 0;    // seconds of a step of the same samples
  double error = 0;
  bool measured = false;  // else replayed
};

std::vector<Help> help_for(const CountParts& parts, const RowEvidence& row);

// Returns the seconds of a recorded step on its slowest rank, with `seconds_of_bucket(bytes)` for
// the exchange of a bucket. Without a change it is the recorded step.
struct BucketLine {
  double per_call = 0, per_byte = 0;  // of the exchange of a bucket, from its start
};
// Fits it to the buckets of the recorded steps. per_call is 0 if all have about the same bytes.
BucketLine bucket_line(const StepEvidence& evidence);
double replayed_step(const DetailStep& step, const BucketLine& line, double bytes_factor);

}  // namespace howmany::reports
