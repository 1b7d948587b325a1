#include "reports/backend_advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "reports/backend_cell.h"
#include "reports/backend_format.h"
#include "reports/backend_reference.h"
#include "reports/format.h"

namespace howmany {
namespace {

constexpr double kBucket = 25 << 20;  // what ddp sends at once, unless told
constexpr double kSlow = 1.25;        // a rank, over the others: more than neighbours differ
constexpr double kAllHidden = 1.1;    // of the shorter: more cannot be but by noise
constexpr int kLeastFitted = 3;       // points: a line goes through any two
constexpr double kNoFit = 1;          // of a time: who is off by more at other sizes tells nothing
constexpr double kOutOfCaches = 16 << 20, kStream = 1 << 20;  // bytes; as the ceilings are
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Contest& contest_of(std::vector<Contest>& contests, const Measurement& m) {
  const std::string op = op_of(m), dtype = parameter_of(m, "dtype");
  const int devices = static_cast<int>(number_of(m, "devices"));
  for (Contest& c : contests)
    if (c.op == op && c.dtype == dtype && c.devices == devices) return c;
  contests.push_back({op, dtype, devices, {}, {}, {}});
  return contests.back();
}

// How an all_reduce and matrix products at the same time compare with one after the other.
std::string both_at_once(const Measurement& m) {
  const double comm = value_of(m, "comm_alone_s"), gemm = value_of(m, "gemm_alone_s");
  const double hidden = value_of(m, "hidden_fraction");  // of the shorter
  if (hidden > kAllHidden) return "times varied too much to tell what running both at once saves";
  if (hidden >= 0)
    return fmt::format("running both at once hides {:.0f} % of the shorter",
                       100 * std::min(1.0, hidden));
  return fmt::format("both at once take {:.0f} % longer than one after the other",
                     -100 * hidden * std::min(comm, gemm) / (comm + gemm));
}

Curve& curve_of(Contest& contest, const std::string& backend) {
  for (NamedCurve& named : contest.curves)
    if (named.backend == backend) return named.curve;
  contest.curves.push_back({backend, {}});
  return contest.curves.back().curve;
}

void add_point(Curve& curve, const CurvePoint& point) {
  if (std::ranges::find(curve, point.bytes, &CurvePoint::bytes) != curve.end()) return;
  curve.push_back(point);
  std::ranges::sort(curve, {}, &CurvePoint::bytes);
}

std::vector<Contest> contests_of(const std::vector<Measurement>& measurements) {
  std::vector<Contest> contests;
  for (const Measurement& m : measurements)
    if (is_timed(m) && m.parameters.contains("bytes"))
      add_point(curve_of(contest_of(contests, m), backend_of(m)), point_of(m));
  for (Contest& contest : contests) {
    for (const NamedCurve& named : contest.curves) {
      const AlphaBeta fit = fit_alpha_beta(named.curve);
      const bool tells = fit.fitted >= kLeastFitted && fit.held_back_error.value_or(0) < kNoFit;
      if (tells) contest.fits[named.backend] = fit;
    }
    contest.best = best_ranges(contest.curves);
  }
  return contests;
}

std::vector<ModelTime> models_of(const std::vector<Measurement>& measurements) {
  std::vector<ModelTime> models;
  std::map<std::pair<std::string, std::string>, std::vector<double>> buckets;
  for (const Measurement& m : measurements) {
    const std::string name = parameter_of(m, "model");
    if (m.suite != "backend" || name.empty()) continue;
    const auto same = [&](const ModelTime& t) { return t.model == name; };
    if (std::ranges::find_if(models, same) == models.end()) models.push_back({name, {}, {}});
    ModelTime& model = *std::ranges::find_if(models, same);
    // NaN, of a bucket that failed, stays NaN in the sum.
    const auto [sum, fresh] = model.seconds.try_emplace(backend_of(m), 0);
    sum->second += is_timed(m) ? value_of(m, "median_s") : kNaN;
    buckets[{name, backend_of(m)}].push_back(number_of(m, "bytes"));
  }
  for (ModelTime& model : models) {
    std::erase_if(model.seconds, [](const auto& entry) { return !std::isfinite(entry.second); });
    if (!model.seconds.empty()) model.bytes = buckets[{model.model, model.seconds.begin()->first}];
  }
  return models;
}

Ceilings ceilings_of(const std::vector<Measurement>& measurements) {
  Ceilings found{kNaN, kNaN, kNaN};
  double most = 0;
  for (const Measurement& m : measurements) {
    if (m.suite != "transfer" || has_failed(m)) continue;
    const double rate = value_of(m, "bytes_per_s"), bytes = number_of(m, "bytes");
    if (m.name == "loopback_tcp" && bytes >= kStream) found.loopback_tcp = rate;
    if (m.name != "copy" || bytes < kOutOfCaches) continue;
    const double threads = number_of(m, "threads");
    if (threads == 1) found.copy_one_thread = rate;
    if (threads >= most) found.copy_all_threads = rate, most = threads;
  }
  return found;
}

// Each rank's share of the bus: what the road is compared with.
std::vector<RoadVerdict> verdicts_of(const std::vector<Measurement>& measurements,
                                     const Ceilings& ceilings) {
  std::map<std::string, RoadVerdict> largest;
  for (const Measurement& m : measurements) {
    const double rate = value_of(m, "busbw_bytes_per_s");
    if (!is_timed(m) || op_of(m) != "all_reduce" || !std::isfinite(rate)) continue;
    const bool tcp = backend_of(m) == "gloo";
    RoadVerdict verdict{
        backend_of(m),         op_of(m), tcp ? "loopback TCP" : "memory copy, all threads",
        number_of(m, "bytes"), rate,     tcp ? ceilings.loopback_tcp : ceilings.copy_all_threads};
    if (verdict.bytes < (tcp ? kStream : kOutOfCaches)) continue;  // caches move more
    if (std::isfinite(verdict.ceiling) && verdict.bytes > largest[verdict.backend].bytes)
      largest[verdict.backend] = verdict;
  }
  std::vector<RoadVerdict> all;
  for (const auto& [backend, verdict] : largest)
    if (verdict.ceiling > 0) all.push_back(verdict);
  return all;
}

std::vector<ReferenceLine> references_of(const std::vector<Measurement>& measurements,
                                         const std::string& gpu) {
  std::vector<ReferenceLine> lines;
  for (const Measurement& m : measurements) {
    if (gpu.empty() || !is_timed(m) || backend_of(m) != "nccl") continue;
    const double bytes = number_of(m, "bytes"), rate = value_of(m, "busbw_bytes_per_s");
    const int gpus = static_cast<int>(number_of(m, "devices"));
    if (const auto verdict = judge(gpu, gpus, op_of(m), bytes, rate))
      lines.push_back({op_of(m), verdict->words, verdict->reference->system,
                       verdict->reference->source + ", " + verdict->reference->read, bytes, rate,
                       verdict->reference->bytes_per_s});
  }
  return lines;
}

// Backends by the time of one thing, fastest first.
using Ranking = std::vector<std::pair<double, std::string>>;

Ranking ranking_of(const ModelTime& model) {
  Ranking ranking;
  for (const auto& [backend, seconds] : model.seconds) ranking.emplace_back(seconds, backend);
  std::ranges::sort(ranking);
  return ranking;
}

// The size nearest to a bucket that every backend was measured at; 0 when there is none.
double common_size(const Contest& contest) {
  double best = 0;
  for (const CurvePoint& p : contest.curves[0].curve) {
    const bool everywhere = std::ranges::all_of(contest.curves, [&](const NamedCurve& named) {
      return std::ranges::find(named.curve, p.bytes, &CurvePoint::bytes) != named.curve.end();
    });
    if (everywhere &&
        (best == 0 || std::abs(std::log(p.bytes / kBucket)) < std::abs(std::log(best / kBucket))))
      best = p.bytes;
  }
  return best;
}

// Of several numbers of ranks the largest speaks: those of others are in the tables.
std::vector<Measurement> of_most_ranks(std::vector<Measurement> all) {
  double most = 0;
  for (const Measurement& m : all)
    if (m.suite == "backend") most = std::max(most, number_of(m, "devices"));
  std::erase_if(all, [&](const Measurement& m) {
    return m.suite == "backend" && number_of(m, "devices") < most;
  });
  return all;
}

class Writer {
 public:
  explicit Writer(BackendAdvice& advice) : advice_(advice) {}

  void write(const std::vector<Measurement>& measurements, const std::vector<Measurement>& main) {
    if (advice_.contests.empty()) {
      advice_.certain = false;
      advice_.because = "There is no answer, because nothing was measured.";
    } else if (!from_model()) {
      from_contest();
    }
    for (const RoadVerdict& v : advice_.verdicts)
      advice_.notes.push_back(
          fmt::format("{} moves {} in an {} of {}: {:.2f} of this machine's {} ({}).", v.backend,
                      format_rate(v.bytes_per_s), v.op, format_bytes(v.bytes), v.ratio(), v.road,
                      format_rate(v.ceiling)));
    for (const ReferenceLine& r : advice_.references)
      advice_.notes.push_back(fmt::format("{} of {} over nccl: {} is {} for {} ({}; {}).", r.op,
                                          format_bytes(r.bytes), format_rate(r.bytes_per_s),
                                          r.verdict, r.system, format_rate(r.reference), r.source));
    add_slow_ranks(main);
    add_overlap(main);
    add_problems(measurements);
  }

 private:
  const Contest& main_contest() const {
    const Contest* chosen = &advice_.contests[0];
    for (const Contest& c : advice_.contests)
      if (c.op == "all_reduce" && (chosen->op != c.op || c.devices > chosen->devices)) chosen = &c;
    return *chosen;
  }

  bool from_model() {
    for (const ModelTime& model : advice_.models) {
      const Ranking ranking = ranking_of(model);
      if (ranking.empty()) continue;
      const std::string what = fmt::format(
          "the {} of {} ({})",
          model.bytes.size() == 1 ? "gradient bucket"
                                  : fmt::format("{} gradient buckets", model.bytes.size()),
          model.model, bucket_words(model.bytes));
      recommend(ranking, what);
      return true;
    }
    return false;
  }

  static std::string bucket_words(const std::vector<double>& bytes) {
    std::vector<std::string> words;
    for (const double b : bytes) words.push_back(format_bytes(b));
    if (words.size() <= 4) return fmt::format("{}", fmt::join(words, ", "));
    const auto [least, most] = std::ranges::minmax(bytes);
    return fmt::format("{} to {}", format_bytes(least), format_bytes(most));
  }

  void from_contest() {
    const Contest& contest = main_contest();
    const double bytes = common_size(contest);
    Ranking ranking;
    for (const NamedCurve& named : contest.curves) {
      const auto p = std::ranges::find(named.curve, bytes, &CurvePoint::bytes);
      if (p != named.curve.end()) ranking.emplace_back(p->seconds, named.backend);
    }
    std::ranges::sort(ranking);
    if (ranking.empty()) {
      advice_.certain = false;
      advice_.because = "There is no answer, because no size was measured over every backend.";
      return;
    }
    recommend(ranking, fmt::format("{} of {} over {} ranks", contest.op, format_bytes(bytes),
                                   contest.devices));
  }

  void recommend(const Ranking& ranking, const std::string& what) {
    const auto& [seconds, backend] = ranking.front();
    const Contest& contest = main_contest();
    advice_.recommended = backend;
    if (ranking.size() == 1) {
      advice_.because =
          fmt::format("Only {} was measured: {} takes {}.", backend, what, format_seconds(seconds));
      return;
    }
    advice_.certain = !contest.best.empty() && contest.best.back().certain;
    const auto& [next_seconds, next] = ranking[1];
    advice_.because =
        fmt::format("Use {}: {} for {}; {} takes {} there, {} less than {} ({}).", backend,
                    in_words(contest.best), contest.op, what, format_seconds(seconds),
                    format_times(next_seconds / seconds), next, format_seconds(next_seconds));
    if (!advice_.certain)
      advice_.notes.push_back(
          "At some sizes the intervals of two backends overlap: there either will do.");
  }

  struct SlowRank {
    double rank, of_others;
  };
  // Only one whom every such measurement and every round of it names.
  static std::optional<SlowRank> slow_rank(const std::vector<const Measurement*>& paces) {
    std::set<double> ranks;
    double least = std::numeric_limits<double>::infinity();
    for (const Measurement* m : paces) {
      const auto slowest = m->metrics.find("slowest_rank");
      if (has_failed(*m) || slowest == m->metrics.end()) continue;
      const Metric& rank = slowest->second;
      ranks.insert({rank.value, rank.low.value_or(rank.value), rank.high.value_or(rank.value)});
      least = std::min(least, value_of(*m, "of_others"));
    }
    if (ranks.size() != 1 || !(least > kSlow)) return {};
    return SlowRank{*ranks.begin(), least};
  }

  void add_slow_ranks(const std::vector<Measurement>& measurements) {
    std::vector<const Measurement*> paces;
    std::map<std::string, std::vector<const Measurement*>> links;  // each backend has its own
    for (const Measurement& m : measurements) {
      if (op_of(m) == "pace") paces.push_back(&m);
      if (op_of(m) == "links") links[backend_of(m)].push_back(&m);
    }
    if (const auto slow = slow_rank(paces))
      advice_.notes.push_back(
          fmt::format("Rank {} is slow: the same work takes it {:.2f}x as long as the others, "
                      "which wait for it in every collective.",
                      slow->rank, slow->of_others));
    for (const auto& [backend, all] : links)
      if (const auto slow = slow_rank(all))
        advice_.notes.push_back(fmt::format(
            "Rank {} has slow links over {}: a message takes {:.2f}x as long to it as between the "
            "others, which wait for it in every collective.",
            slow->rank, backend, slow->of_others));
  }

  void add_overlap(const std::vector<Measurement>& measurements) {
    for (const Measurement& m : measurements) {
      if (m.suite != "backend" || op_of(m) != "overlap" || has_failed(m)) continue;
      const double comm = value_of(m, "comm_beside_s") / value_of(m, "comm_alone_s");
      const double gemm = value_of(m, "gemm_beside_s") / value_of(m, "gemm_alone_s");
      if (!std::isfinite(comm) || !std::isfinite(gemm)) continue;
      advice_.notes.push_back(fmt::format(
          "{}: an all_reduce of {} beside matrix products takes {:.2f}x as long as alone, and the "
          "products {:.2f}x; {}.",
          backend_of(m), format_bytes(number_of(m, "bytes")), comm, gemm, both_at_once(m)));
    }
  }

  void add_problems(const std::vector<Measurement>& measurements) {
    std::set<std::string> told;
    for (const Measurement& m : measurements)
      for (const std::string& flag : m.flags) {
        if (flag.starts_with("failed: ") && told.insert(flag).second)
          advice_.notes.push_back(fmt::format("Failed: {} of {}: {}.", m.name,
                                              format_bytes(number_of(m, "bytes")),
                                              without_full_stop(flag.substr(8))));
        if (flag == "rehearsal" && told.insert(flag).second)
          advice_.notes.push_back(
              "Ranks shared a GPU: a rehearsal, which tells nothing of several.");
        if (flag == "oversubscribed" && told.insert(flag).second)
          advice_.notes.push_back(
              "Ranks shared cores or a GPU (oversubscribed): with their own they would do better.");
        if (flag == "short of cores" && told.insert(flag).second)
          advice_.notes.push_back(
              "Fewer cores than GPUs fed them (short of cores): with one each they may do better.");
      }
  }

  BackendAdvice& advice_;
};

}  // namespace

std::string in_words(const std::vector<BestRange>& best) {
  if (best.empty()) return "no size in common";
  if (best.size() == 1) return best[0].backend + " at every size";
  std::vector<std::string> words;
  for (size_t i = 0; i + 1 < best.size(); ++i)
    words.push_back(fmt::format("{} below {}", best[i].backend, format_bytes(best[i + 1].from)));
  words.push_back(best.back().backend + " above");
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string gpu_of(const nlohmann::json& context) {
  const auto gpu = context.find("gpu");
  return gpu != context.end() && gpu->is_string() ? gpu->get<std::string>() : "";
}

BackendAdvice advise_backend(const std::vector<Measurement>& measurements, const std::string& gpu) {
  BackendAdvice advice;
  advice.contests = contests_of(measurements);
  const std::vector<Measurement> main = of_most_ranks(measurements);
  advice.models = models_of(main);
  advice.ceilings = ceilings_of(measurements);
  advice.verdicts = verdicts_of(main, advice.ceilings);
  advice.references = references_of(main, gpu);
  Writer(advice).write(measurements, main);
  return advice;
}

}  // namespace howmany
