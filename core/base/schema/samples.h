// SPDX-License-Identifier: Apache-2.0
// The keys of one line of `<suite>.samples.jsonl`, which benches append and reports read.
#pragma once

namespace howmany::sample_line {

inline constexpr const char* kName = "name";
inline constexpr const char* kSeconds = "seconds";
inline constexpr const char* kConverged = "converged";
inline constexpr const char* kFlags = "flags";
inline constexpr const char* kParameters = "parameters";
inline constexpr const char* kWorld = "world";
inline constexpr const char* kWhy = "why";      // of a script: where the time of its steps goes
inline constexpr const char* kSteps = "steps";  // of a rehearsal: {"s", "collectives"}
inline constexpr const char* kCounted =
    "counted";  // of script_bench --count: the operations of a step

}  // namespace howmany::sample_line
