// SPDX-License-Identifier: Apache-2.0
// Changes that would shorten a step, each with the seconds that it would save.
//
// Replayed. The recorded steps (Mode::kSynced) with one thing changed: buckets start when their
//   gradients are ready and follow each other on one stream; backward ends at the end of the last.
//   The time of a bucket of other bytes follows a line through the recorded ones. Or the parts of
//   the step with one thing changed, see help_for().
// Measured. By steps that ran so: kNarrow, kBf16 (--try).
// Only changes that apply, above 2 % of the step and above twice their error. The best first.
// Thread safety. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "reports/why/parts.h"

namespace howmany::reports {

struct Help {
  std::string what;   // a name of the list of help_for()
  std::string paste;  // a line to paste, or a sentence
  double gain = 0;    // seconds of a step of the same samples
  double error = 0;
  bool measured = false;  // else replayed
};

// Returns the changes that help. None if the parts were refused. With S the step, w its data wait,
// k workers of the loader, and L the time of a batch (k S if the loader is late; w if k is 0):
//   more_workers        w - max(0, L / k' - (S - w)), and less the CPU time of a batch if the rank
//                       has one core. k' is the least that saves most of w
//   persistent_workers  `epochs`, if workers start in each epoch
//   larger_batch        half of `exchange` and `machinery`: gradients of two batches, one exchange
//   fewer_buckets, more_buckets  replayed with another bucket_cap_mb
//   bucket_view         the copies out of buckets: the end of backward in kNoop
//   bf16_gradients      kBf16, or replayed with half of the bytes
//   fewer_threads       w(B) - w(kNarrow), and `slowest` if ranks are slow in turn
//   faster_link         replayed with a tenth of the time of a byte; on GPUs or several hosts
//   less_outside        half of `outside`
//   equal_ranks         `slowest`
std::vector<Help> help_for(const CountParts& parts, const RowEvidence& row);

// The exchange of a bucket, from its start: per_call + per_byte * bytes.
struct BucketLine {
  double per_call = 0, per_byte = 0;
};
// Fits the buckets of the recorded steps on their slowest rank. per_call is 0 if all have about the
// same bytes.
BucketLine bucket_line(const StepEvidence& evidence);

// Factors of the line and of the bytes.
struct ExchangeChange {
  double bytes = 1, per_byte = 1;
};
// Return the seconds of a recorded step of a rank. Without a change it is `step.train`.
double replayed_step(const DetailStep& step, const BucketLine& line, const ExchangeChange& change);
// As replayed_step(), with another `cap` of the bytes of a bucket, and all buckets on the line. The
// first bucket stays, because DistributedDataParallel has another cap for it.
double replayed_with_cap(const DetailStep& step, const BucketLine& line, double cap);

}  // namespace howmany::reports
