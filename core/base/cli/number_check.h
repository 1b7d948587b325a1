// Checks of the numbers of options, refused in one line that names what was typed: of CLI11's own,
// the ranges let NaN pass, and PositiveNumber tells all digits of the largest double.
//
//   app.add_option("--time-budget", seconds)->check(above_zero());
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace howmany {

constexpr int64_t kMostBatch = int64_t{1} << 30;  // times thousands of devices it still fits

CLI::Validator above_zero();  // and no more than 1e9
CLI::Validator at_least_zero();
CLI::Validator between(double low, double high);  // both included
CLI::Validator at_least_one();                    // a whole number
CLI::Validator whole_up_to(int64_t most);         // from 1

// For a name: "" is the value of a shell variable that is not set.
CLI::Validator not_empty();

}  // namespace howmany
