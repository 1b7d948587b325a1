// SPDX-License-Identifier: Apache-2.0
// Divides the time that a step loses against one device into parts that add up.
//
// Ideal. The useful step of one device: the timed step without data wait, starts of epochs, work
//   outside of steps and DistributedDataParallel, and with no more threads than cores. Times the
//   samples of a rank over those of the one device. The row of one rank, and with the same samples
//   also ranks alone, show it too: the least counts, since other programs only slow a step.
// Parts. Means over ranks. With R the recorded steps, N those without exchange (kNoop), B those of
//   ranks alone (kAlone), w = train - blocked, and medians over the steps of a mode:
//   data, epochs, outside  as timed, and the wait of the other ranks for the rank that has more
//   exchange   the least blocked of the ranks, in R, less that in N at the end of backward. So it
//              is the transfer that backward does not hide
//   slowest    blocked of the timed steps, mean over ranks, less `exchange` and those waits, plus
//              the share of the slow rank in `compute`. So a rank that takes x longer than the
//              others loses x. Timed backward less the backward of R without its tail gives the
//              tail of timed steps
//   machinery  w(N) - w(B), and the end of backward in N. On one rank: train(R) - w(B). Without B:
//              of the row of one rank
//   compute    w(B) - ideal, and w(R) - w(N): cores and memory that ranks or the exchange share.
//              Without B: what remains of the timed steps, and `remainder` is true
//   rest       what remains. A negative part is 0, and its value goes here
// Noise. `error` is the standard error: over rounds if there are two or more, else over steps. A
//   part below twice its error, or below 1 % of the step, is joined into `rest`.
// Abstention. `refused` says why no part is named: `rest` without the joined parts is more than 5 %
//   of the step, the ranks disagree on the order of their buckets, the exchange was not seen, the
//   evidence of the one device is missing, or fewer steps were timed than its long steps recur in.
// Source. Wait and transfer by the least of the ranks: no clock of one rank is compared with that
//   of another. Profiling literature calls it serialisation and transfer (POP, pop-coe.eu).
// Thread safety. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "reports/why/estimate.h"
#include "reports/why/evidence.h"

namespace howmany::reports {

enum class LossPart { kData, kExchange, kCompute, kSlowest, kMachinery, kOutside, kEpochs, kRest };
inline constexpr int kParts = 8;
const char* name_of(LossPart part);  // "data", as in JSON
const char* word_of(LossPart part);  // "waiting for data", for people

struct Lost {
  LossPart part = LossPart::kRest;
  double seconds = 0, error = 0;
  double on_one = 0;  // of it, that one device has too
};

// The slowest rank.
struct Slowest {
  int rank = -1;     // the one that waits least; -1: none
  double extra = 0;  // its own work over the mean of the others, in the median step
  double share = 0;  // of the recorded steps in which it was the last
  LossPart because =
      LossPart::kCompute;  // where most of `extra` is: data, outside, epochs or compute
  bool always() const { return share >= 0.7; }
};

struct CountParts {
  int devices = 1;
  std::string model, mode, backend;
  double step = 0, ideal = 0;
  std::vector<Lost> parts;  // above 0, the largest first, `rest` last. They add up to step - ideal
  // Of `exchange`: of one step.
  double bytes = 0, last_bucket_bytes = 0;
  int buckets = 0;
  Measured threads;        // of `compute`: from more threads than cores
  bool remainder = false;  // `compute` was not measured by itself
  Slowest slowest = {};
  std::string refused;
  double lost() const { return step - ideal; }
  const Lost& of(LossPart part) const;  // of 0 seconds if `parts` has it not
};

// One row of a run: the evidence of each of its rounds.
struct RowEvidence {
  int devices = 1;
  std::string model, mode, backend;
  bool baseline = false;  // of the one device
  std::vector<StepEvidence> rounds;
};

// Sets Lost::on_one of each row from `one`, the parts of the one device.
void set_on_one(const CountParts& one, std::vector<CountParts>& rows);

// Sets `count.parts` from all parts but the rest, and `refused` if the rest is too large. Joins
// parts that are noise.
void set_parts(std::vector<Lost> parts, CountParts& count);

// Returns the parts of every row, in order.
std::vector<CountParts> parts_of(const std::vector<RowEvidence>& rows);

// The part to name: the largest of at least 5 % of the step and twice its error. nullptr if there
// is none, or the parts were refused.
const Lost* cause_of(const CountParts& parts);

}  // namespace howmany::reports
