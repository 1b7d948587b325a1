// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/schema/reasons.h"
#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "reports/comm/advise.h"
#include "reports/comm/run.h"

namespace howmany::reports {
namespace {

constexpr double kBucket = 25 << 20;  // bytes; ddp's default bucket size
// Gradients come in larger messages. A backend that wins below is not the one to train with.
constexpr double kMinAnswerBytes = 64 << 10;

// A backend and its time, sorted fastest first.
struct Ranked {
  std::string backend;
  CurvePoint time;
};
using Ranking = std::vector<Ranked>;

// A PyTorch job can use only torch's backends. If two or more were measured, the others are
// dropped.
template <typename Candidate>
void keep_torch(std::vector<Candidate>& all) {
  const auto is_torch = [](const Candidate& c) { return is_torch_backend(c.backend); };
  if (std::ranges::count_if(all, is_torch) < 2) return;
  std::erase_if(all, [&](const Candidate& c) { return !is_torch(c); });
}

void sort(Ranking& ranking) {
  std::ranges::sort(ranking, {}, [](const Ranked& r) { return r.time.seconds; });
}

struct Subject {
  std::string takes;                  // "all_reduce of 16 MiB over 2 ranks takes"
  const OperationResults* operation;  // operation of the reported ranges; nullptr: none
  std::vector<BestRange> best;
  std::string but = "";  // missing measurements
};

// Logarithmic distance to the bucket size.
double distance(double bytes) { return std::abs(std::log(bytes / kBucket)); }

// Returns the size nearest to a bucket that every backend was measured at, or 0.
double common_size(const std::vector<NamedCurve>& curves) {
  double best = 0;
  if (curves.empty()) return best;
  for (const CurvePoint& p : curves[0].curve) {
    const bool everywhere = std::ranges::all_of(
        curves, [&](const NamedCurve& named) { return at_size(named.curve, p.bytes) != nullptr; });
    if (everywhere && (best == 0 || distance(p.bytes) < distance(best))) best = p.bytes;
  }
  return best;
}

std::string bucket_words(const std::vector<double>& bytes) {
  std::vector<std::string> words;
  for (const double b : bytes) words.push_back(format_bytes(b));
  if (words.size() <= 4) return fmt::format("{}", fmt::join(words, ", "));
  const auto [least, most] = std::ranges::minmax(bytes);
  return fmt::format("{} to {}", format_bytes(least), format_bytes(most));
}

std::string buckets_of(const ModelTime& model) {
  if (model.bytes.size() == 1) return "gradient bucket of " + model.model;
  return fmt::format("{} gradient buckets of {}", model.bytes.size(), model.model);
}

// Returns "mpi was not measured at 1 of the 3 gradient buckets of mlp".
std::string missing_words(const ModelTime& model) {
  std::vector<std::string> words;
  for (const auto& [backend, count] : model.missing) {
    const std::string how =
        model.failed.contains(backend) ? "failed or was not measured" : "was not measured";
    words.push_back(fmt::format("{} {} at {} of the {}", backend, how, count, buckets_of(model)));
  }
  return fmt::format("{}", fmt::join(words, " and "));
}

class Chooser {
 public:
  explicit Chooser(BackendAdvice& advice) : advice_(advice) {}

  void choose() {
    if (advice_.operations.empty())
      return no_answer(reason::kNothingMeasured, "nothing was measured");
    if (advice_.models.empty()) return by_sweep({}, "");
    const ModelTime& model = advice_.models.front();
    if (model.missing.empty()) return by_model(model);
    by_sweep(model.failed, missing_words(model));
  }

 private:
  void no_answer(const char* reason, const std::string& why) {
    advice_.certain = false;
    advice_.reason = reason;
    advice_.because = fmt::format("No answer: {}.", why);
  }

  // Returns the sweep of all_reduce over the most ranks, else another sweep. An empty `dtype`
  // matches any.
  const OperationResults* main_operation(const std::string& dtype) const {
    const OperationResults* chosen = nullptr;
    for (const OperationResults& c : advice_.operations) {
      if (c.sweep.empty() || (!dtype.empty() && c.dtype != dtype)) continue;
      const bool first = !chosen || (c.op == "all_reduce" && chosen->op != c.op);
      if (first || (c.op == "all_reduce" && c.devices > chosen->devices)) chosen = &c;
    }
    return chosen;
  }

  void by_model(const ModelTime& model) {
    Ranking ranking;
    for (const auto& [backend, time] : model.times) ranking.push_back({backend, time});
    keep_torch(ranking);
    const OperationResults* operation = main_operation(model.dtype);
    if (operation && operation->op != "all_reduce") operation = nullptr;
    recommend(std::move(ranking),
              {fmt::format("the {} ({}) {}", buckets_of(model), bucket_words(model.bytes),
                           model.bytes.size() == 1 ? "takes" : "take"),
               operation, operation ? ranges_of(operation->sweep) : std::vector<BestRange>()});
  }

  void by_sweep(const std::set<std::string>& failed, const std::string& but) {
    const OperationResults* operation = main_operation("");
    if (!operation)
      return no_answer(reason::kNothingMeasured, but.empty() ? "no size was measured" : but);
    std::vector<NamedCurve> curves = operation->sweep;
    std::erase_if(curves, [&](const NamedCurve& c) { return failed.contains(c.backend); });
    keep_torch(curves);
    const double bytes = common_size(curves);
    if (bytes == 0)
      return no_answer(reason::kNoCommonSize, "no size was measured over every backend");
    if (bytes < kMinAnswerBytes && curves.size() > 1)
      return no_answer(reason::kMessagesTooSmall, too_small(bytes));
    Ranking ranking;
    for (const NamedCurve& named : curves)
      ranking.push_back({named.backend, *at_size(named.curve, bytes)});
    recommend(std::move(ranking), {fmt::format("{} of {} over {} ranks takes", operation->op,
                                               format_bytes(bytes), operation->devices),
                                   operation, best_ranges(curves), but});
  }

  static std::string too_small(double bytes) {
    return fmt::format(
        "{} is the largest message that was measured over every backend, and gradients are larger. "
        "Use --max-bytes 16M or a larger --time-budget",
        format_bytes(bytes));
  }

  static std::vector<BestRange> ranges_of(std::vector<NamedCurve> curves) {
    keep_torch(curves);
    return best_ranges(curves);
  }

  void recommend(Ranking ranking, const Subject& subject) {
    sort(ranking);
    advice_.recommended = ranking.front().backend;
    advice_.certain = subject.but.empty();
    const std::string said =
        ranking.size() == 1 ? alone(ranking.front(), subject) : against(ranking, subject);
    advice_.because = said + torch_words(ranking, said) +
                      (subject.but.empty() ? "." : fmt::format("; but {}.", subject.but));
    add_note(ranking, subject);
  }

  std::string alone(const Ranked& only, const Subject& subject) {
    const std::string time = format_seconds(only.time.seconds);
    const bool tried =
        !subject.but.empty() || (subject.operation && subject.operation->tried.size() > 1);
    advice_.reason = reason::kOneMeasured;
    if (!tried)
      return fmt::format("Only {} was measured: {} {}", only.backend, subject.takes, time);
    advice_.certain = false;
    return fmt::format("Use {}: {} {} there, and no other has a time to compare", only.backend,
                       subject.takes, time);
  }

  std::string against(const Ranking& ranking, const Subject& subject) {
    const Ranked& first = ranking.front();
    const auto near = std::find_if(ranking.begin() + 1, ranking.end(),
                                   [&](const Ranked& r) { return !apart(first.time, r.time); });
    const bool told = near == ranking.end();
    advice_.certain &= told;
    advice_.reason = told ? reason::kFastest : reason::kNoDifference;
    return fmt::format("Use {}: {}{} {} there, {}", first.backend, ranges_words(subject),
                       subject.takes, format_seconds(first.time.seconds),
                       told ? faster(first, ranking[1]) : no_faster(first, *near));
  }

  // Mentions torch's only row, unless the sentence already names it.
  static std::string torch_words(const Ranking& ranking, const std::string& said) {
    for (const Ranked& r : ranking)
      if (is_torch_backend(r.backend) && said.find(r.backend) == said.npos)
        return fmt::format("; {}, which PyTorch uses, takes {}", r.backend,
                           format_seconds(r.time.seconds));
    return "";
  }

  static std::string ranges_words(const Subject& subject) {
    if (!subject.operation || subject.best.empty()) return "";
    return fmt::format("{} for {}; ", in_words(subject.best, subject.operation->reach),
                       subject.operation->op);
  }

  static std::string faster(const Ranked& first, const Ranked& next) {
    return fmt::format("{} less than {} ({})", format_times(next.time.seconds / first.time.seconds),
                       next.backend, format_seconds(next.time.seconds));
  }

  // With one round, warns that another run may differ, even if the intervals are apart.
  static std::string no_faster(const Ranked& first, const Ranked& near) {
    if (!first.time.interval || !near.time.interval)
      return faster(first, near) + ", but of too few calls or rounds to be certain";
    if (first.time.one_round || near.time.one_round)
      return faster(first, near) +
             ", which does not separate them (one round: another run may "
             "differ)";
    return fmt::format("and {} {}, which the runs cannot separate", near.backend,
                       format_seconds(near.time.seconds));
  }

  void add_note(const Ranking& ranking, const Subject& subject) {
    if (ranking.size() > 1 && std::ranges::all_of(ranking, is_torch_backend, &Ranked::backend))
      advice_.notes.push_back("The recommendation compares torch's backends only.");
    if (ranking.size() < 2 || std::ranges::all_of(subject.best, &BestRange::certain)) return;
    advice_.notes.push_back(
        "At some sizes two backends do not differ significantly; either is fine there.");
  }

  BackendAdvice& advice_;
};

// Neighbouring ranges that are reported as one, with one or more backends.
struct MergedRange {
  std::vector<std::string> backends;
  double from = 0;
  bool told = false;  // certain at one size or more

  void add(const BestRange& range) {
    if (std::ranges::find(backends, range.backend) == backends.end())
      backends.push_back(range.backend);
  }
  std::string words() const { return fmt::format("{}", fmt::join(backends, " or ")); }
};

std::vector<MergedRange> merged_ranges(const std::vector<BestRange>& best) {
  std::vector<MergedRange> all;
  for (const BestRange& range : best) {
    const bool told = range.certain || range.partly;
    if (all.empty() || told || all.back().told) all.push_back({{}, range.from, told});
    all.back().add(range);
  }
  return all;
}

}  // namespace

void choose_backend(BackendAdvice& advice) { Chooser(advice).choose(); }

std::string in_words(const std::vector<BestRange>& best, const Reach& reach) {
  if (best.empty()) return "no size in common";
  const std::vector<MergedRange> all = merged_ranges(best);
  std::vector<std::string> words;
  for (size_t i = 0; i + 1 < all.size(); ++i)
    words.push_back(fmt::format("{} below {}", all[i].words(), format_bytes(all[i + 1].from)));
  std::string last = all.size() > 1 ? "above" : "at every size";
  if (reach.beyond)
    last =
        fmt::format("{} {} (beyond, not all were measured)",
                    all.size() > 1 ? "from there to" : "at every size to", format_bytes(reach.to));
  else if (!reach.whole)
    last += " that all were measured at";
  words.push_back(fmt::format("{} {}", all.back().words(), last));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace howmany::reports
