// SPDX-License-Identifier: Apache-2.0
#include "benches/script/rate.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "core/base/error.h"
#include "core/base/statistics.h"
#include "core/base/text/log_number.h"
#include "core/base/text/table.h"

namespace howmany::benches {
namespace {

constexpr const char *kRateGroup = "samples_per_s", *kStepGroup = "step_s";
constexpr size_t kMostLine = size_t{64} << 10;
// As in torch_hook/howmany_hook/warmup.py.
constexpr size_t kWindow = 5;
constexpr double kSettled = 0.05;
constexpr int kFewestDropped = 2, kFewestTimed = 5;

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text = {};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

class Pattern {
 public:
  explicit Pattern(const std::string& text) {
    int error = 0;
    PCRE2_SIZE place = 0;
    code_.reset(pcre2_compile(units(text), text.size(), 0, &error, &place, nullptr));
    HM_REQUIRE(code_ != nullptr, "--rate: {} at character {}", message_of(error), place + 1);
    const int rate = group(kRateGroup), step = group(kStepGroup);
    HM_REQUIRE((rate > 0) != (step > 0),
               "--rate: write one named group, (?<{}>[0-9.]+) or (?<{}>[0-9.]+)", kRateGroup,
               kStepGroup);
    per_step_ = step > 0;
    group_ = std::max(rate, step);
    match_.reset(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  }

  bool per_step() const { return per_step_; }

  // Returns the text of the group if the line matches.
  std::optional<std::string_view> find(std::string_view line) const {
    const int found =
        pcre2_match(code_.get(), units(line), line.size(), 0, 0, match_.get(), nullptr);
    HM_ENSURE(found >= 0 || found == PCRE2_ERROR_NOMATCH, "[script] --rate: {}", message_of(found));
    if (found <= group_) return {};  // the group took no part in the match
    const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(match_.get()) + 2 * group_;
    if (ends[0] == PCRE2_UNSET) return {};
    return line.substr(ends[0], ends[1] - ends[0]);
  }

 private:
  int group(const char* name) const {
    return pcre2_substring_number_from_name(code_.get(), units(name));
  }

  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_data, Free> match_;
  int group_ = 0;
  bool per_step_ = false;
};

// Joins pieces of text to lines.
class Lines {
 public:
  template <typename Take>
  void add(std::string_view text, const Take& take) {
    for (const char c : text) {
      if (c == '\n' || c == '\r') {
        take(std::string_view(line_));
        line_.clear();
      } else if (line_.size() < kMostLine) {
        line_ += c;
      }
    }
  }

 private:
  std::string line_;
};

double positive_number(std::string_view text) {
  const std::optional<LogNumber> number = leading_number(text);
  HM_ENSURE(number && (number->rest.empty() || number->rest == ",") &&
                std::isfinite(number->value) && number->value > 0,
            "[script] --rate: \"{}\" is not a number above 0",
            without_controls(std::string(text.substr(0, 100))));
  return number->value;
}

bool has_settled(std::span<const double> values) {
  if (values.size() < 3 * kWindow) return false;
  const auto last = values.last(3 * kWindow);
  const double a = median(last.first(kWindow)), b = median(last.subspan(kWindow, kWindow)),
               c = median(last.last(kWindow));
  return std::abs(b - a) < kSettled * a && std::abs(c - b) < kSettled * b;
}

}  // namespace

struct RateLog::State {
  Pattern pattern;
  double limit;
  std::array<Lines, 2> streams = {};
  std::vector<double> dropped = {}, timed = {};  // seconds of a step or a sample
  double began = 0;                              // of the warm-up, then of the timed lines
  bool warm = false;
  std::string failed = {};

  void take(std::string_view line, double now) {
    if (const auto text = pattern.find(line)) add(positive_number(*text), now);
  }

  void add(double value, double now) {
    const double one = pattern.per_step() ? value : 1 / value;
    if (warm) {
      timed.push_back(one);
      return;
    }
    if (dropped.empty()) began = now;
    dropped.push_back(one);
    const auto count = static_cast<int>(dropped.size()) - 1;  // without the first line
    const bool late = count >= kFewestDropped && now - began > std::max(limit, 1.0);
    warm = late || has_settled(std::span(dropped).subspan(1));
    if (warm) began = now;
  }
};

RateLog::RateLog(const std::string& pattern, double seconds)
    : state_(new State{.pattern = Pattern(pattern), .limit = seconds}) {}
RateLog::~RateLog() = default;

bool RateLog::per_step() const { return state_->pattern.per_step(); }

void RateLog::take(Stream stream, std::string_view text, double now) {
  if (!state_->failed.empty()) return;
  try {
    state_->streams[stream == Stream::kOut ? 0 : 1].add(
        text, [&](std::string_view line) { state_->take(line, now); });
  } catch (const Error& error) {
    state_->failed = error.what();
  }
}

bool RateLog::is_done(double now) const {
  if (!state_->failed.empty()) return true;
  return state_->warm && std::ssize(state_->timed) >= kFewestTimed &&
         now - state_->began >= state_->limit;
}

std::vector<double> RateLog::seconds() const {
  HM_ENSURE(state_->failed.empty(), "{}", state_->failed);
  const size_t all = state_->dropped.size() + state_->timed.size();
  HM_ENSURE(std::ssize(state_->timed) >= kFewestTimed,
            "[script] --rate matched {} of the printed lines{}; at least {} are needed after the "
            "warm-up",
            all,
            all == 0 ? " (a program may hold its output back: try stdbuf -oL in front of it)" : "",
            kFewestTimed);
  return state_->timed;
}

bool RateLog::matched_any() const { return !state_->dropped.empty() || !state_->timed.empty(); }

int RateLog::warmup_lines() const { return static_cast<int>(state_->dropped.size()); }

}  // namespace howmany::benches
