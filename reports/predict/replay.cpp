// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <map>
#include <utility>

#include "core/base/statistics.h"
#include "core/base/text/json.h"
#include "reports/predict/ladder.h"

namespace howmany::reports {
namespace {

constexpr size_t kMaxSteps = 1000, kMaxCollectives = 100'000;
constexpr double kMaxBytes = 1e15, kMaxSeconds = 1e6, kMinSeconds = 1e-9;

double within(const JsonNode& node, double low, double high) {
  const double value = node.number();
  if (value < low || value > high)
    node.fail(fmt::format("expected a number from {:g} to {:g}", low, high));
  return value;
}

Collective kind_from(const JsonNode& node) {
  const std::string text = node.string();
  for (const auto& [name, kind] : kCollectives)
    if (text == name) return kind;
  node.fail("unknown collective");
}

LoggedCollective collective_from(const JsonNode& node) {
  LoggedCollective one;
  one.kind = kind_from(node.at("op"));
  one.bytes = within(node.at("bytes"), 0, kMaxBytes);
  one.ranks = static_cast<int>(node.at("ranks").integer_between(1, kMaxPredicted));
  if (const auto stride = node.find("stride"))
    one.stride = static_cast<int>(stride->integer_between(1, kMaxPredicted));
  one.at = within(node.at("at_s"), -kMaxSeconds, kMaxSeconds);
  one.seconds = within(node.at("s"), 0, kMaxSeconds);
  one.backward = static_cast<int>(node.at("backward").integer_between(-1, 1 << 20));
  if (const auto waited = node.find("waited_s"))
    one.waited = within(*waited, -kMaxSeconds, kMaxSeconds);
  return one;
}

LoggedStep step_from(const JsonNode& node) {
  LoggedStep step;
  step.seconds = within(node.at("s"), kMinSeconds, kMaxSeconds);
  for (const JsonNode& one : node.at("collectives").items()) {
    if (step.collectives.size() == kMaxCollectives) one.fail("too many collectives");
    step.collectives.push_back(collective_from(one));
  }
  return step;
}

// The stream of collectives and the program, in the log and in the replay. `later_` is how much
// later the program is in the replay.
class Replay {
 public:
  // Waits that began before `now` end.
  void wait_until(double now) {
    while (!waits_.empty() && waits_.begin()->first <= now) {
      const auto [began, end] = waits_.begin()->second;
      resume(began, end);
      waits_.erase(waits_.begin());
    }
  }

  void call(const LoggedCollective& one, double seconds) {
    wait_until(one.at);
    if (pass_ >= 0 && one.backward != pass_) end_pass();
    last_.logged = std::max(one.at, last_.logged) + one.seconds;
    last_.replayed = std::max(one.at + later_, last_.replayed) + seconds;
    if (one.waited) {
      waits_.emplace(*one.waited, std::pair(*one.waited, last_));
    } else if (one.backward >= 0) {
      pass_ = one.backward;
      last_call_ = one.at;
    }
  }

  double later() {
    wait_until(INFINITY);
    if (pass_ >= 0) end_pass();
    return later_;
  }

 private:
  struct End {
    double logged = 0, replayed = 0;
  };

  // The program waits from `began` on, a time of the log.
  void resume(double began, End end) {
    later_ = std::max(began + later_, end.replayed) - std::max(began, end.logged);
  }

  void end_pass() {
    resume(last_call_, last_);
    pass_ = -1;
  }

  double later_ = 0, last_call_ = 0;
  End last_;
  std::multimap<double, std::pair<double, End>> waits_;  // by the time when they began
  int pass_ = -1;  // the backward pass that has not ended; -1: none
};

// On more ranks, the group grows with them.
bool reaches_all(const LoggedCollective& one, int world) { return one.ranks * one.stride >= world; }

}  // namespace

StepLog step_log_from(const nlohmann::json& steps, int world, const std::string& source) {
  StepLog log{world, {}};
  const JsonNode root(steps, source);
  for (const JsonNode& one : root.items()) {
    if (log.steps.size() == kMaxSteps) one.fail("too many steps");
    log.steps.push_back(step_from(one));
  }
  return log;
}

std::string replay_refusal(const StepLog& log, int devices) {
  for (const LoggedStep& step : log.steps)
    for (const LoggedCollective& one : step.collectives) {
      const int least = reaches_all(one, log.world) ? one.stride : one.ranks * one.stride;
      if (devices % least != 0)
        return fmt::format("groups of {} devices do not divide {}", least, devices);
    }
  return "";
}

double replayed_seconds(const LoggedStep& step, int world, const Cluster& cluster, int devices) {
  Replay replay;
  for (const LoggedCollective& one : step.collectives) {
    const int ranks = reaches_all(one, world) ? devices / one.stride : one.ranks;
    replay.call(one, cluster.seconds(one.kind, one.bytes, ranks, one.stride));
  }
  return step.seconds + replay.later();
}

double logged_seconds(const StepLog& log) {
  if (log.steps.empty()) throw InputError("the rehearsal logged no step");
  std::vector<double> seconds;
  for (const LoggedStep& step : log.steps) seconds.push_back(step.seconds);
  return median(seconds);
}

double spread_of(const StepLog& log) {
  constexpr double kNormalMedian = 0.9539;  // of |difference| of two draws, over their deviation
  std::vector<double> differences;
  for (size_t i = 1; i < log.steps.size(); ++i)
    differences.push_back(std::abs(log.steps[i].seconds - log.steps[i - 1].seconds));
  if (differences.empty()) return 0;
  return median(differences) / kNormalMedian / logged_seconds(log);
}

double straggler_factor(double spread, int devices) {
  if (devices < 2) return 1;
  const double n = devices;
  return 1 + spread * boost::math::quantile(boost::math::normal(), (n - 0.375) / (n + 0.25));
}

double replayed_seconds(const StepLog& log, const Cluster& cluster, int devices) {
  if (log.steps.empty()) throw InputError("the rehearsal logged no step");
  std::vector<double> seconds;
  for (const LoggedStep& step : log.steps)
    seconds.push_back(replayed_seconds(step, log.world, cluster, devices));
  const double step = median(seconds);
  if (!(step > 0)) throw InputError("the log of the rehearsal contradicts itself");
  return step;
}

}  // namespace howmany::reports
