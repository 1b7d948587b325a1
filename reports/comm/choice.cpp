#include "reports/comm/choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "reports/comm/advise.h"
#include "reports/comm/run.h"

namespace howmany::reports {
namespace {

constexpr double kBucket = 25 << 20;  // bytes; ddp's default bucket size

// A backend and its time, sorted fastest first.
struct Rival {
  std::string backend;
  CurvePoint time;
};
using Ranking = std::vector<Rival>;

// A PyTorch job can use only torch's backends. If two or more were measured, the others are
// dropped.
template <typename Candidate>
void keep_torch(std::vector<Candidate>& all) {
  const auto is_torch = [](const Candidate& c) { return is_torch_backend(c.backend); };
  if (std::ranges::count_if(all, is_torch) < 2) return;
  std::erase_if(all, [&](const Candidate& c) { return !is_torch(c); });
}

void sort(Ranking& ranking) {
  std::ranges::sort(ranking, {}, [](const Rival& r) { return r.time.seconds; });
}

struct Subject {
  std::string takes;       // "all_reduce of 16 MiB over 2 ranks takes"
  const Contest* contest;  // contest of the reported ranges; nullptr: none
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
    if (advice_.contests.empty()) return no_answer("nothing was measured");
    if (advice_.models.empty()) return by_sweep({}, "");
    const ModelTime& model = advice_.models.front();
    if (model.missing.empty()) return by_model(model);
    by_sweep(model.failed, missing_words(model));
  }

 private:
  void no_answer(const std::string& why) {
    advice_.certain = false;
    advice_.because = fmt::format("There is no answer, because {}.", why);
  }

  // Returns the sweep of all_reduce over the most ranks, else another sweep. An empty `dtype`
  // matches any.
  const Contest* main_contest(const std::string& dtype) const {
    const Contest* chosen = nullptr;
    for (const Contest& c : advice_.contests) {
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
    const Contest* contest = main_contest(model.dtype);
    if (contest && contest->op != "all_reduce") contest = nullptr;
    recommend(std::move(ranking),
              {fmt::format("the {} ({}) {}", buckets_of(model), bucket_words(model.bytes),
                           model.bytes.size() == 1 ? "takes" : "take"),
               contest, contest ? ranges_of(contest->sweep) : std::vector<BestRange>()});
  }

  void by_sweep(const std::set<std::string>& failed, const std::string& but) {
    const Contest* contest = main_contest("");
    if (!contest) return no_answer(but.empty() ? "no size was measured" : but);
    std::vector<NamedCurve> curves = contest->sweep;
    std::erase_if(curves, [&](const NamedCurve& c) { return failed.contains(c.backend); });
    keep_torch(curves);
    const double bytes = common_size(curves);
    if (bytes == 0) return no_answer("no size was measured over every backend");
    Ranking ranking;
    for (const NamedCurve& named : curves)
      ranking.push_back({named.backend, *at_size(named.curve, bytes)});
    recommend(std::move(ranking), {fmt::format("{} of {} over {} ranks takes", contest->op,
                                               format_bytes(bytes), contest->devices),
                                   contest, best_ranges(curves), but});
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

  std::string alone(const Rival& only, const Subject& subject) {
    const std::string time = format_seconds(only.time.seconds);
    const bool tried =
        !subject.but.empty() || (subject.contest && subject.contest->tried.size() > 1);
    if (!tried)
      return fmt::format("Only {} was measured: {} {}", only.backend, subject.takes, time);
    advice_.certain = false;
    return fmt::format("Use {}: {} {} there, and no other has a time to compare", only.backend,
                       subject.takes, time);
  }

  std::string against(const Ranking& ranking, const Subject& subject) {
    const Rival& first = ranking.front();
    const auto near = std::find_if(ranking.begin() + 1, ranking.end(),
                                   [&](const Rival& r) { return !apart(first.time, r.time); });
    const bool told = near == ranking.end();
    advice_.certain &= told;
    return fmt::format("Use {}: {}{} {} there, {}", first.backend, ranges_words(subject),
                       subject.takes, format_seconds(first.time.seconds),
                       told ? faster(first, ranking[1]) : no_faster(first, *near));
  }

  // Mentions torch's only row, unless the sentence already names it.
  static std::string torch_words(const Ranking& ranking, const std::string& said) {
    for (const Rival& r : ranking)
      if (is_torch_backend(r.backend) && said.find(r.backend) == said.npos)
        return fmt::format("; {}, which PyTorch uses, takes {}", r.backend,
                           format_seconds(r.time.seconds));
    return "";
  }

  static std::string ranges_words(const Subject& subject) {
    if (!subject.contest || subject.best.empty()) return "";
    return fmt::format("{} for {}; ", in_words(subject.best, subject.contest->reach),
                       subject.contest->op);
  }

  static std::string faster(const Rival& first, const Rival& next) {
    return fmt::format("{} less than {} ({})", format_times(next.time.seconds / first.time.seconds),
                       next.backend, format_seconds(next.time.seconds));
  }

  // With one round, warns that another run may differ, even if the intervals are apart.
  static std::string no_faster(const Rival& first, const Rival& near) {
    if (!first.time.interval || !near.time.interval)
      return faster(first, near) + ", but of too few calls or rounds to be certain";
    if (first.time.one_round || near.time.one_round)
      return faster(first, near) +
             ", which does not tell them apart (one round: another run may "
             "differ)";
    return fmt::format("and {} {}, which the runs cannot tell apart", near.backend,
                       format_seconds(near.time.seconds));
  }

  void add_note(const Ranking& ranking, const Subject& subject) {
    if (ranking.size() > 1 && std::ranges::all_of(ranking, is_torch_backend, &Rival::backend))
      advice_.notes.push_back("The recommendation compares torch's backends only.");
    if (ranking.size() < 2 || std::ranges::all_of(subject.best, &BestRange::certain)) return;
    advice_.notes.push_back(
        "At some sizes two backends do not differ significantly; either is fine there.");
  }

  BackendAdvice& advice_;
};

// Neighbouring ranges that are reported as one, with one or more backends.
struct Stretch {
  std::vector<std::string> backends;
  double from = 0;
  bool told = false;  // certain at one size or more

  void add(const BestRange& range) {
    if (std::ranges::find(backends, range.backend) == backends.end())
      backends.push_back(range.backend);
  }
  std::string words() const { return fmt::format("{}", fmt::join(backends, " or ")); }
};

std::vector<Stretch> stretches_of(const std::vector<BestRange>& best) {
  std::vector<Stretch> all;
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
  const std::vector<Stretch> all = stretches_of(best);
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
