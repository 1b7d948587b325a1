// SPDX-License-Identifier: Apache-2.0
// Values with their standard errors, from steps, ranks and rounds. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "reports/why/evidence.h"

namespace howmany::reports {

inline constexpr double kNoiseErrors = 2;  // a value of fewer standard errors is noise

// A value and its standard error.
struct Measured {
  double value = 0, error = 0;
};
Measured operator+(Measured a, Measured b);
Measured operator-(Measured a, Measured b);
Measured operator*(double factor, Measured a);

// Returns the median, 0 of no values. Its error comes from the quartiles, which one disturbed step
// does not move.
Measured median_of(const std::vector<double>& values);
// The error comes from the values of two or more rounds, else it is that of the one.
Measured mean_over_rounds(const std::vector<Measured>& rounds);

using OfRank = double (*)(const DetailStep&);
double useful(const DetailStep& step);  // w = train - blocked
double train(const DetailStep& step);
double blocked(const DetailStep& step);

// Returns how long a rank was in collectives outside of backward, in a step of kSynced.
double blocked_outside(const DetailStep& step);
// Returns the time from the last bucket to the end of backward in kNoop: copies to the gradients.
double end_of_noop(const StepEvidence& e);

std::vector<double> of_ranks(const DetailSteps& step, OfRank value);
// Returns the rank that waits least, which is the last to come.
size_t least_blocked(const DetailSteps& step);
// Returns the median over the steps of a mode of the mean over ranks; nullopt without such steps.
// The error of few steps is the spread of the recorded steps.
std::optional<Measured> in_mode(const StepEvidence& e, Mode mode, OfRank value);

}  // namespace howmany::reports
