// SPDX-License-Identifier: Apache-2.0
// The training rate in the lines that a program prints (--rate), for programs that the hook does
// not know.
//
// Pattern. A regular expression of PCRE2 with one of these named groups around a number:
//   samples_per_s  samples per second of all devices together
//   step_s         seconds per step
// Lines. Standard output and standard error; a carriage return ends a line too, as in progress
//   bars. The rest of a line longer than 64 KiB is ignored.
// Warm-up. The first line is dropped, since it holds the start of the program. Then lines are
//   dropped until the median of five of them changes by less than 5 % twice, or until
//   `seconds` (at least 1) have passed and two lines were dropped.
// Thread safety. None: call from one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace howmany::benches {

class RateLog {
 public:
  // Throws std::invalid_argument if the pattern is bad or has none or both of the groups.
  RateLog(const std::string& pattern, double seconds);
  ~RateLog();

  bool per_step() const;  // the group is step_s

  // Takes what the program printed next to one of its streams. `now`: seconds on any clock.
  enum class Stream { kOut, kErr };
  void take(Stream stream, std::string_view text, double now);

  // True if `seconds` have passed since the warm-up and at least 5 lines matched in them.
  bool is_done(double now) const;

  // Returns the seconds of a step, or of a sample, in the lines after the warm-up. Throws Error if
  // fewer than 5 lines matched in them, or the text of a group was no positive number.
  std::vector<double> seconds() const;
  int warmup_lines() const;
  bool matched_any() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace howmany::benches
