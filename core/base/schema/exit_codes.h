// SPDX-License-Identifier: Apache-2.0
// The exit codes of all commands. `howmany help exit-codes` explains them.
#pragma once

namespace howmany::exit_code {

inline constexpr int kFine = 0;
inline constexpr int kCheckFailed = 1;  // a regression, wrong data or a failed test
inline constexpr int kUsage = 2;        // wrong usage or input; nothing was measured
inline constexpr int kMeasurementFailed = 3;
inline constexpr int kNotComparable = 4;
inline constexpr int kInconclusive = 5;
inline constexpr int kInterrupted = 130;  // Ctrl-C; the results so far are kept

}  // namespace howmany::exit_code
