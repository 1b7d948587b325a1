// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/schema/marks.h"
#include "core/base/schema/reasons.h"
#include "core/base/text/format.h"
#include "reports/gpus/mode_notes.h"
#include "reports/results/disturbance.h"

namespace howmany::reports {
namespace {

constexpr double kMostWrapped = 0.99;        // of the parameters: all but rounding
constexpr double kNoticeableWait = 0.1;      // of a step
constexpr double kNoticeableBetween = 0.03;  // of the time

// Writes the text of one answer. Rows are the best of each number of devices, ascending.
class Writer {
 public:
  Writer(Advice& advice, const AdviceOptions& options, std::string noun)
      : advice_(advice), options_(options), noun_(std::move(noun)) {
    for (const Point& point : advice.points) {
      if (point.best) rows_.push_back(&point);
    }
  }

  void write() {
    if (rows_.empty() || rows_.front()->devices != 1) return no_baseline();
    if (rows_.size() == 1)
      return rows_.front()->has_flag(mark::kUsesOneDevice) ? uses_one() : one_device();
    const Point* chosen = rows_.front();
    for (const Point* row : rows_) {
      if (row->devices > 1 && pays(*row)) chosen = row;
    }
    advice_.recommended = chosen->devices;
    advice_.mode = chosen->mode;
    advice_.backend = chosen->backend;
    chosen->devices > 1 ? ask_for(*chosen) : stay_on_one();
    add_one_node();
    add_baselines();
    add_modes(*chosen);
    add_try_ddp(*chosen);
    add_own_rate(*chosen);
    add_missing_exchange();
    add_between_steps(*chosen);
    add_doubts_of_steps();
    add_data_wait(*chosen);
    add_uncertain(*chosen);
    add_next_step(*chosen);
    add_failures();
    mark_disturbed(busy_elsewhere(), advice_);
  }

 private:
  bool pays(const Point& p) const { return payoff_of(p, options_.min_efficiency) == Payoff::kPays; }
  bool unsure(const Point& p) const {
    return payoff_of(p, options_.min_efficiency) == Payoff::kUnsure;
  }

  // "8 GPUs on 2 nodes"
  std::string things(int n) const {
    const auto row = std::ranges::find(advice_.points, n, &Point::devices);
    const bool many = row != advice_.points.end() && row->nodes > 1;
    return number(n, noun_) + (many ? fmt::format(" on {} nodes", row->nodes) : "");
  }

  static std::string spread(const Point& p) {
    const Metric& e = p.efficiency;
    if (!e.low || !e.high)
      return fmt::format("efficiency {}, interval unknown", format_ratio(e.value));
    return fmt::format("efficiency {}, 95 % CI {} to {}", format_ratio(e.value),
                       format_ratio(*e.low), format_ratio(*e.high));
  }

  static std::string how(const Point& p) {
    if (p.mode == "script") return "your command";
    return p.backend == "local" ? p.mode : p.mode + " over " + p.backend;
  }

  void no_baseline() {
    advice_.certain = false;
    const std::vector<Point>& all = advice_.points;
    const auto own = std::ranges::find_if(all, [](auto& p) { return p.has_flag(mark::kOwnRanks); });
    answer(reason::kNoBaseline,
           own == all.end()
               ? fmt::format("No answer for {}: the baseline on one device was not measured.",
                             advice_.model)
               : fmt::format("No answer for {0}: it starts {1} ranks itself, on any number of "
                             "devices. Write {{n}} where the command has that number: howmany gpus "
                             "-- python {0} --nproc {{n}}.",
                             advice_.model, own->devices));
    add_failures();
  }

  void one_device() {
    const std::vector<Point>& all = advice_.points;
    const bool tried = std::ranges::any_of(all, [](auto& p) { return p.devices > 1; });
    const bool failed = tried && std::ranges::all_of(all, [](const Point& p) {
                          return p.devices == 1 || p.has_flag("failed");
                        });
    const std::string why = failed  ? fmt::format("every run on more than 1 {} failed", noun_)
                            : tried ? fmt::format("no result on more than 1 {} is valid", noun_)
                                    : fmt::format("only 1 {} was measured", noun_);
    const char* const where = noun_ == "GPU" ? ", such as salloc --gres=gpu:2" : "";
    advice_.certain = false;
    answer(reason::kOneDeviceMeasured,
           fmt::format("No answer yet for {}: {}.", advice_.model, why) +
               (failed ? "" : fmt::format(" Run this where there are 2 or more{}.", where)));
    add_between_steps(*rows_.front());
    add_data_wait(*rows_.front());
    add_failures();
    mark_disturbed(busy_elsewhere(), advice_);
  }

  // A script that forms no process group, even where torchrun starts it.
  void uses_one() {
    advice_.recommended = 1;
    advice_.mode = rows_.front()->mode;
    advice_.backend = rows_.front()->backend;
    if (const std::string why = text_of(*rows_.front(), mark::kFailsWithRanks); !why.empty())
      fails_with_ranks(why);
    else if (rows_.front()->has_flag(mark::kHasGroup))
      needs_options();
    else
      trains_on_one();
    add_between_steps(*rows_.front());
    add_doubts_of_steps();
    add_data_wait(*rows_.front());
    mark_disturbed(busy_elsewhere(), advice_);
  }

  void fails_with_ranks(const std::string& why) {
    advice_.certain = false;
    answer(reason::kUsesOneDevice,
           fmt::format("Use 1 {0}: {1} trains on 1, and with 2 ranks it failed: {2}.", noun_,
                       advice_.model, without_full_stop(why)));
    advice_.notes.emplace_back(
        "If it has a launcher of its own, write that command, with {n} for the number of devices.");
  }

  void needs_options() {
    advice_.certain = false;
    answer(reason::kUsesOneDevice,
           fmt::format("Use 1 {0}: {1}, as it is started, trains on 1, also under torchrun. It can "
                       "use DistributedDataParallel: give the option or argument with which it "
                       "does, such as devices=2 of Lightning.",
                       noun_, advice_.model));
  }

  void trains_on_one() {
    answer(reason::kUsesOneDevice,
           fmt::format("Use 1 {}: {} trains on 1 device. More will not help until it uses "
                       "DistributedDataParallel.",
                       noun_, advice_.model));
    advice_.notes.emplace_back("--try-ddp measures it with DistributedDataParallel.");
  }

  // The text after `start` of a flag; empty if there is none.
  static std::string text_of(const Point& point, std::string_view start) {
    const auto flag = std::ranges::find_if(
        point.flags, [&](const std::string& one) { return one.starts_with(start); });
    return flag == point.flags.end() ? "" : flag->substr(start.size());
  }

  void ask_for(const Point& p) {
    answer(reason::kPays,
           fmt::format("Use {} with {}: {} trains {}x as fast as on 1 ({}, target {:.2f}).",
                       things(p.devices), how(p), advice_.model, format_ratio(p.speedup.value),
                       spread(p), options_.min_efficiency));
    if (p.devices == rows_.back()->devices)
      advice_.notes.push_back(
          fmt::format("{} was the largest count measured; more may scale further.{}", p.devices,
                      noun_ == "GPU" ? " howmany predict DIR says how far, with intervals." : ""));
  }

  void stay_on_one() {
    const Point& best = *(compared_ = *std::max_element(
                              rows_.begin() + 1, rows_.end(), [](const Point* a, const Point* b) {
                                return a->efficiency.value < b->efficiency.value;
                              }));
    const double asked = options_.min_efficiency;
    const bool none_faster = std::ranges::none_of(rows_, [](const Point* p) {
      return p->devices > 1 && p->efficiency.low.value_or(0) > break_even(p->devices);
    });
    const bool little_asked = none_faster && least_efficiency(best.devices, asked) > asked;
    const Reason reason = reason_against(unsure(best), little_asked);
    answer(reason.code,
           fmt::format("Use 1 {}: {} for {}. {} with {} train {}x as fast ({}, target {:.2f}).",
                       noun_, reason.text, advice_.model, things(best.devices), how(best),
                       format_ratio(best.speedup.value), spread(best), asked));
  }

  struct Reason {
    const char *code, *text;
  };
  static Reason reason_against(bool unsure, bool about_speed) {
    if (about_speed)
      return unsure ? Reason{reason::kUncertainToBeFaster, "more may not be faster"}
                    : Reason{reason::kNotFaster, "more are not faster"};
    return unsure ? Reason{reason::kUncertainToPay, "more may not pay"}
                  : Reason{reason::kDoesNotPay, "more do not pay"};
  }

  void answer(const char* reason, std::string because) {
    advice_.reason = reason;
    advice_.because = std::move(because);
  }

  double busy_elsewhere() const {
    double most = 0;
    for (const Point& p : advice_.points) most = std::fmax(most, p.busy_elsewhere);
    return most;
  }

  void add_modes(const Point& chosen) {
    const int devices = compared_ != nullptr ? compared_->devices : chosen.devices;
    if (devices == 1) return;
    for (std::string& note : mode_notes(advice_.points, devices, things(devices))) {
      advice_.notes.push_back(std::move(note));
    }
  }

  void add_one_node() {
    const std::string why = text_of(*rows_.front(), mark::kFailsOnNodes);
    if (why.empty()) return;
    advice_.certain = false;
    advice_.notes.push_back(fmt::format("Only one node was measured. On two, {} failed: {}.",
                                        advice_.model, without_full_stop(why)));
  }

  void add_baselines() {
    const std::string rates = text_of(*rows_.front(), mark::kBaselines);
    if (!rates.empty())
      advice_.notes.push_back(fmt::format(
          "Each speedup is relative to one device of the same job. Rates of one device: {}.",
          rates));
  }

  void add_try_ddp(const Point& chosen) {
    if (chosen.has_flag(mark::kTryDdp))
      advice_.notes.push_back(
          fmt::format("{} trains on 1 device as it is. On several, its model was put into "
                      "DistributedDataParallel, and every rank trained on the same batches.",
                      advice_.model));
  }

  void add_own_rate(const Point& chosen) {
    if (chosen.has_flag(mark::kOwnRate))
      advice_.notes.push_back(fmt::format(
          "The rate is the one that {} prints. How long it waits for data is not known.",
          advice_.model));
  }

  void add_between_steps(const Point& chosen) {
    if (!(chosen.between_steps_fraction > kNoticeableBetween)) return;
    advice_.notes.push_back(
        fmt::format("Validation, rollouts and other work between steps: {} of the time on {}, part "
                    "of the rate.",
                    format_percent(chosen.between_steps_fraction), things(chosen.devices)));
  }

  // Training on several devices without it is not that of DistributedDataParallel.
  void add_missing_exchange() {
    const auto found = std::ranges::find_if(
        rows_, [](const Point* p) { return p->devices > 1 && p->has_flag(mark::kNoExchange); });
    if (found != rows_.end()) {
      advice_.certain = false;
      advice_.because += fmt::format(" On {} its ranks exchanged no gradients: each trains alone.",
                                     things((*found)->devices));
    }
    for (const Point* p : rows_) {
      if (p->devices == 1 || !(p->wrapped_fraction < kMostWrapped)) continue;
      advice_.certain = false;
      advice_.because += fmt::format(
          " --try-ddp put {} of its parameters into DistributedDataParallel: with all of them it "
          "is slower.",
          format_percent(p->wrapped_fraction));
      return;
    }
  }

  void add_doubts_of_steps() {
    for (const auto& [flag, text] :
         {std::pair{mark::kNotSettled,
                    "its samples per step still changed, so the rate is not yet that of training"},
          std::pair{mark::kNoWholeCycle,
                    "a long step did not recur, so the rate may leave out work between steps"}}) {
      const auto found =
          std::ranges::find_if(rows_, [&](const Point* p) { return p->has_flag(flag); });
      if (found == rows_.end()) continue;
      advice_.certain = false;
      advice_.notes.push_back(fmt::format("Uncertain on {}: {}. Give a larger --time-budget.",
                                          things((*found)->devices), text));
    }
  }

  // A slow loader hides bad scaling: every number of devices waits for it.
  void add_data_wait(const Point& chosen) {
    if (!(chosen.data_wait_fraction > kNoticeableWait)) return;
    advice_.notes.push_back(
        fmt::format("{} of a step on {} is data wait. Try more {} before more devices.",
                    format_percent(chosen.data_wait_fraction), things(chosen.devices),
                    advice_.script ? "num_workers in its DataLoader" : "--workers"));
  }

  void add_uncertain(const Point& chosen) {
    for (const Point* row : rows_) {
      if (row->devices <= chosen.devices || !unsure(*row)) continue;
      advice_.certain = false;
      advice_.notes.push_back(uncertainty(*row));
    }
  }

  std::string uncertainty(const Point& p) const {
    const std::string start =
        fmt::format("Uncertain at {}: {} spans {:.2f}. ", things(p.devices), spread(p),
                    least_efficiency(p.devices, options_.min_efficiency));
    const std::string seconds = text_of(p, mark::kOutOfTime);
    if (!seconds.empty() && p.efficiency.basis != "rounds")
      return fmt::format(
          "Uncertain at {}: the time ended before every round was measured. --time-budget {} would "
          "hold them.",
          things(p.devices), seconds);
    if (!p.efficiency.low) {
      return fmt::format(
          "Uncertain at {}: too few iterations for an interval. Measure three rounds or more "
          "(--rounds), with a --time-budget that they fit into.",
          things(p.devices));
    }
    if (p.efficiency.basis != "rounds") {
      return start + "Measure three complete rounds or more (--rounds, --time-budget).";
    }
    if (p.rounds_to_decide) {
      return start + fmt::format("About --rounds {} would settle it.", *p.rounds_to_decide);
    }
    return start + "More rounds would not settle it; either choice is sound.";
  }

  void add_next_step(const Point& chosen) {
    const auto next = std::find_if(rows_.begin(), rows_.end(),
                                   [&](const Point* row) { return row->devices > chosen.devices; });
    if (next == rows_.end()) return;
    const Point& up = **next;
    if (&up == compared_) return;  // already in the answer
    advice_.notes.push_back(
        fmt::format("Next step: {} train {}x as fast as {}, with {:.2g}x the devices.",
                    things(up.devices), format_ratio(up.speedup.value / chosen.speedup.value),
                    chosen.devices, static_cast<double>(up.devices) / chosen.devices));
  }

  void add_failures() {
    add_slower_kernels();
    for (const Point& p : advice_.points) {
      for (const std::string& flag : p.flags) {
        if (!flag.starts_with("failed: ")) continue;
        advice_.notes.push_back(fmt::format("Failed: {} on {}: {}.", how(p), things(p.devices),
                                            without_full_stop(flag.substr(8))));
      }
    }
  }

  // One sentence for the first point: the others have the same operations.
  void add_slower_kernels() {
    for (const Point& p : advice_.points)
      for (const std::string& flag : p.flags) {
        if (!flag.starts_with(mark::kFallback)) continue;
        advice_.notes.push_back(
            fmt::format("Slower kernels than cuDNN's were measured on {}: {}.", things(p.devices),
                        without_full_stop(flag.substr(std::string_view(mark::kFallback).size()))));
        return;
      }
  }

  Advice& advice_;
  const AdviceOptions& options_;
  std::string noun_;
  std::vector<const Point*> rows_;
  const Point* compared_ = nullptr;  // the row that one device was compared with
};

}  // namespace

void write_answer(const AdviceOptions& options, const std::string& noun, Advice& advice) {
  Writer(advice, options, noun).write();
}

}  // namespace howmany::reports
