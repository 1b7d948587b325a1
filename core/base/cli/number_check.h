// SPDX-License-Identifier: Apache-2.0
// Validators for numeric options. An error is one line that quotes the value that was passed. The
// validators of CLI11 do not suffice: its ranges accept NaN, and the message of PositiveNumber
// prints all digits of the largest double.
//
//   add_option(app, flag::kTimeBudget, seconds)->check(above_zero());
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

namespace howmany {

constexpr int64_t kMaxBatch = int64_t{1} << 30;  // fits times thousands of devices
constexpr int64_t kMaxSeed = std::numeric_limits<int64_t>::max();

CLI::Validator above_zero();  // and no more than 1e9
CLI::Validator at_least_zero();
CLI::Validator between(double low, double high);          // both included
CLI::Validator at_least_one();                            // a whole number
CLI::Validator whole_between(int64_t low, int64_t high);  // both included

// Rejects "", which is the value of an unset shell variable.
CLI::Validator not_empty();

}  // namespace howmany
