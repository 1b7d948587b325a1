#include "reports/workers/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/statistics.h"
#include "core/base/text/format.h"
#include "reports/results/disturbance.h"
#include "reports/workers/compare.h"
#include "reports/workers/notes.h"

namespace howmany::reports {
namespace {

constexpr double kNearBestRate = 0.98;  // of the best rate: more workers are not worth it
constexpr double kBinding = 1.2;        // a bound within this factor of the best rate is the limit
constexpr double kIdle = 1.5;           // if the cores' bound is this factor away, cores wait
constexpr double kUneven = 0.3;         // coefficient of variation of batches
constexpr size_t kLevers = 3;
// Size of a photo that is stored as small as training allows, relative to the sample's side.
constexpr double kStoredSide = 256.0 / 224, kStoredAspect = 4.0 / 3;

double low_of(const Metric& m) { return m.low.value_or(m.value); }
double high_of(const Metric& m) { return m.high.value_or(m.value); }

class Advisor {
 public:
  explicit Advisor(const WorkersFacts& facts) : facts_(facts) {
    for (const WorkersPoint& p : facts.points)
      if (p.error.empty() && std::isfinite(p.rate.value)) points_.push_back(&p);
    std::sort(points_.begin(), points_.end(),
              [](auto* a, auto* b) { return a->workers < b->workers; });
    for (const WorkersPoint* p : points_)
      if (best_ == nullptr || sure_rate(*p) > sure_rate(*best_)) best_ = p;
  }

  WorkersAdvice advise() {
    add_failures();
    if (best_ == nullptr) {
      advice_.certain = false;
      advice_.because = fmt::format(
          "No answer, because {}.",
          facts_.why_none.empty() ? "no number of workers could be measured" : facts_.why_none);
      add(left_out_of_python(facts_.python));
      return advice_;
    }
    advice_.limit = limit();
    if (facts_.undecided) add_undecided();
    demanded() ? for_demand() : for_rate();
    add_levers();
    add_notes();
    add(bound_notes(facts_));
    add_lines();
    mark_disturbed(facts_.busy_elsewhere, advice_);
    return std::move(advice_);
  }

 private:
  bool demanded() const { return facts_.asked.demand > 0; }
  double all() const { return facts_.asked.demand * facts_.asked.devices; }
  std::string devices() const { return number(facts_.asked.devices, "device"); }
  std::string workers(int n) const {
    return facts_.asked.devices > 1 ? number(n, "worker") + " a device" : number(n, "worker");
  }

  void for_demand() {
    const WorkersPoint* chosen = nullptr;
    for (const WorkersPoint* p : points_)
      if (!chosen && p->stall && p->stall->value <= facts_.most_stall) chosen = p;
    if (chosen == nullptr) return cannot_feed();
    advice_.recommended = chosen->workers;
    advice_.feeds = true;
    const bool sure = high_of(*chosen->stall) <= facts_.most_stall;
    advice_.certain = advice_.certain && sure;
    advice_.because = fmt::format(
        "Use {}, because {} {} at {} samples/s in all ({}) with {} stall; {} is allowed.",
        workers(chosen->workers), chosen->workers == 1 ? "it feeds" : "they feed", devices(),
        format_count(all()), facts_.demand_from, percent(chosen->stall->value),
        percent(facts_.most_stall));
    if (!sure)
      advice_.notes.push_back(
          fmt::format("Uncertain: the 95 % interval of the stall reaches {}; measure longer with "
                      "--time-budget, or take one worker more.",
                      percent(high_of(*chosen->stall))));
    add_fewer(*chosen);
  }

  void add_fewer(const WorkersPoint& chosen) {
    const WorkersPoint* fewer = nullptr;
    for (const WorkersPoint* p : points_)
      if (p->workers < chosen.workers) fewer = p;
    if (fewer == nullptr || !fewer->stall) return;
    advice_.notes.push_back(fmt::format("With {} training waits {} of the time.",
                                        workers(fewer->workers), percent(fewer->stall->value)));
  }

  void cannot_feed() {
    const WorkersPoint& near = nearest();
    advice_.recommended = near.workers;
    advice_.limit = limit_of_demand();
    advice_.because = fmt::format(
        "{} {} at {} samples/s in all ({}): the limit is {}; {} {} nearest with {} samples/s{}.",
        facts_.undecided ? "No worker count that was measured feeds" : "No worker count can feed",
        devices(), format_count(all()), facts_.demand_from, advice_.limit, workers(near.workers),
        near.workers == 1 ? "comes" : "come", format_count(near.rate.value),
        near.stall ? fmt::format(" and {} stall", percent(near.stall->value)) : "");
    if (rates_allow())
      advice_.notes.push_back(
          "Batches come fast enough on average; beside training they come too late or too "
          "unevenly.");
    else
      advice_.notes.push_back(fmt::format("What is there is enough for {:.2g} of {} such {}.",
                                          near.rate.value / facts_.asked.demand,
                                          facts_.asked.devices,
                                          facts_.asked.devices == 1 ? "device" : "devices"));
  }

  bool rates_allow() const {
    return std::ranges::any_of(points_, [&](auto* p) { return p->stall && p->rate.value > all(); });
  }

  // If rates are sufficient, returns the point with the least stall.
  const WorkersPoint& nearest() const {
    if (!rates_allow()) return first_near_best();
    const WorkersPoint* least = nullptr;
    for (const WorkersPoint* p : points_)
      if (p->stall && (!least || p->stall->value < least->stall->value)) least = p;
    return *least;
  }

  // Idle cores do not limit the demand.
  std::string limit_of_demand() const {
    if (rates_allow()) return "how evenly batches come beside training";
    const bool idle = all() * core_s(facts_.probes) < facts_.probes.cores;
    if (!idle || advice_.limit != limit_of_cores()) return advice_.limit;
    return facts_.undecided || !facts_.wanted.empty() ? "the numbers of workers that were measured"
                                                      : "the loader, not " + advice_.limit;
  }

  void add_undecided() {
    advice_.certain = false;
    advice_.notes.push_back(
        "Uncertain: the time budget was spent before the answer was decided; measure longer with "
        "--time-budget.");
  }

  const WorkersPoint& first_near_best() const {
    for (const WorkersPoint* p : points_)
      if (enough(*p)) return *p;
    return *best_;
  }

  bool enough(const WorkersPoint& p) const {
    const double best = sure_rate(*best_);
    return told_by_cores(facts_) ? suffices_by_cores(facts_, p, best)
                                 : sure_rate(p) * doubt(p) >= kNearBestRate * best;
  }

  // More workers must gain more than a standard error; usually they gain much or nothing.
  double doubt(const WorkersPoint& p) const {
    if (std::min(p.runs.size(), best_->runs.size()) < 2) return 1;
    const double less_sure =
        std::max(compared_rate(facts_, p).error, compared_rate(facts_, *best_).error);
    return std::exp(less_sure * std::sqrt(2));
  }

  double sure_rate(const WorkersPoint& p) const { return compared_rate(facts_, p).sure(); }

  void for_rate() {
    const WorkersPoint& chosen = first_near_best();
    advice_.recommended = chosen.workers;
    const WorkersPoint* more = nullptr;
    for (const WorkersPoint* p : points_)
      if (!more && p->workers > chosen.workers) more = p;
    advice_.because = fmt::format(
        "Use {}, because they load {} samples/s{}; the limit is {}.", workers(chosen.workers),
        format_count(chosen.rate.value),
        more ? fmt::format(", and {} give {}", more->workers, gain_text(*more, chosen)) : "",
        advice_.limit);
    if (more == nullptr) add_unmeasured(chosen);
    if (told_by_cores(facts_)) add_cores();
    add_doubt(chosen);
    advice_.notes.push_back(fmt::format(
        "No demand was given (--samples-per-second, --model or --from): {} feed any training that "
        "takes less than {} samples/s in all.",
        workers(chosen.workers), format_count(low_of(chosen.rate))));
    const WorkersPoint* fewer = nullptr;
    for (const WorkersPoint* p : points_)
      if (p->workers < chosen.workers) fewer = p;
    if (fewer)
      advice_.notes.push_back(fmt::format("{} would do below {} samples/s.",
                                          workers(fewer->workers),
                                          format_count(low_of(fewer->rate))));
  }

  void add_unmeasured(const WorkersPoint& chosen) {
    advice_.certain = false;
    advice_.notes.push_back(
        fmt::format("Uncertain: more than {} were not measured.", workers(chosen.workers)));
  }

  void add_cores() {
    std::string told;
    for (const WorkersPoint* p : points_)
      if (!p->busy.empty())
        told += fmt::format("{}{:.3g} by {}", told.empty() ? "" : ", ", median(p->busy),
                            told.empty() ? workers(p->workers) : std::to_string(p->workers));
    advice_.notes.push_back(fmt::format(
        "Samples wait for storage: numbers are compared by the cores that they keep busy ({}), "
        "which luck changes less than the samples/s of the table.",
        told));
  }

  // Notes that another number may be faster, within the error of its runs.
  void add_doubt(const WorkersPoint& chosen) {
    const WorkersPoint* rival = nullptr;
    for (const WorkersPoint* p : points_)
      if (p != &chosen && (!rival || most_of(*p) > most_of(*rival))) rival = p;
    if (!rival || most_of(*rival) <= kNoticeable * compared_rate(facts_, chosen).value) return;
    advice_.certain = false;
    advice_.notes.push_back(fmt::format(
        "Uncertain: by its 95 % interval {} may load up to {} samples/s; measure longer with "
        "--time-budget.",
        workers(rival->workers), format_count(most_of(*rival))));
  }

  double most_of(const WorkersPoint& p) const {
    const ComparedRate compared = compared_rate(facts_, p);
    return told_by_cores(facts_) ? compared.value * std::exp(2 * compared.error) : high_of(p.rate);
  }

  std::string gain_text(const WorkersPoint& more, const WorkersPoint& than) const {
    const double gain = compared_rate(facts_, more).value / compared_rate(facts_, than).value - 1;
    return gain < 0 ? percent(-gain) + " less" : percent(gain) + " more";
  }

  bool cores_limit() const {
    const double each = best_->rate.value / facts_.asked.devices;
    return each * kIdle >= cores_bound(facts_.probes, facts_.asked);
  }

  // Waiting while reading, in which other workers use the cores.
  double hidden_s() const { return cores_limit() ? facts_.probes.waiting_s : 0; }

  // Returns the limit of the best rate: the nearest bound above it. If none is near, the cores,
  // named by the longest stage of a sample.
  std::string limit() const {
    const LoaderProbes& p = facts_.probes;
    const double each = best_->rate.value / facts_.asked.devices;
    if (each * kBinding >= handover_bound(p)) return "the thread that takes batches";
    if (each * kBinding >= storage_bound(p.warm_files_per_s, facts_.asked.devices))
      return "reading files, even from memory";
    if (p.waiting_s > 0 && !cores_limit()) return "waiting for files";
    return limit_of_cores();
  }

  std::string limit_of_cores() const {
    const LoaderProbes& p = facts_.probes;
    const char* stage = "making samples";
    const double read_s = p.read_s - hidden_s();
    const double most = std::max({read_s, p.decode_s, p.transform_s, p.rest_s});
    if (p.decode_s > 0) {
      stage = most == p.decode_s      ? "decoding"
              : most == p.transform_s ? "resizing and normalising"
              : most == read_s        ? "reading files"
                                      : "collating";
    }
    return fmt::format("{} on {:.2g} core{}", stage, p.cores, p.cores < 1.05 ? "" : "s");
  }

  void add_lever(const std::string& what, double gain) {
    if (gain > kNoticeable && std::isfinite(gain)) advice_.levers.push_back({what, gain});
  }

  // While the cores are the limit, the rate changes inversely with the time of a sample. The
  // hand-over bounds the rate.
  double gain_of(double sample_s) const {
    const double now = best_->rate.value / facts_.asked.devices;
    const double then = now * (facts_.probes.sample_s - hidden_s()) / std::max(sample_s, 1e-9);
    return std::min(then, handover_bound(facts_.probes)) / now;
  }

  void add_levers() {
    const LoaderProbes& p = facts_.probes;
    const double side = std::sqrt(p.sample_bytes / (3 * 4));  // of f32 [size,size,3]
    const double pixels = kStoredAspect * std::pow(kStoredSide * side, 2);
    if (p.pixels > pixels) {
      const double part = pixels / p.pixels;
      add_lever(fmt::format("store the images with a short side of {:.0f} pixels ({:.0f} % of the "
                            "pixels)",
                            kStoredSide * side, 100 * part),
                gain_of((p.read_s - hidden_s() + p.decode_s) * part + p.transform_s + p.rest_s));
    }
    if (p.decode_s > 0 && p.collate_s > 0)
      add_lever(
          fmt::format("keep decoded 8-bit samples in memory{}",
                      facts_.files > 0
                          ? fmt::format(" ({}B)", format_count(facts_.files * p.sample_bytes / 4))
                          : ""),
          gain_of(p.transform_s / 4 + p.collate_s));
    if (p.waiting_s <= 0 || cores_limit())
      add_lever(fmt::format("twice the cores ({:.2g})", 2 * p.cores),
                std::min(2.0, handover_bound(p) / (best_->rate.value / facts_.asked.devices)));
    if (facts_.cold_rate)
      add_lever("storage as fast as memory, for the first epoch",
                best_->rate.value / *facts_.cold_rate);
    add_prefetch_lever();
    std::stable_sort(advice_.levers.begin(), advice_.levers.end(),
                     [](const auto& a, const auto& b) { return a.gain > b.gain; });
    advice_.levers.resize(std::min(advice_.levers.size(), kLevers));
  }

  void add_prefetch_lever() {
    if (!demanded() || coefficient_of_batches(facts_.probes) < kUneven) return;
    LoaderDemand deeper = facts_.asked;
    deeper.prefetch *= 2;
    const int w = *advice_.recommended;
    const double now = predicted_stall(facts_.probes, facts_.asked, w);
    const double then = predicted_stall(facts_.probes, deeper, w);
    add_lever(fmt::format("prefetch_factor={}, since batches take unevenly long", deeper.prefetch),
              (1 - then) / std::max(1 - now, 1e-3));
  }

  void add_gpu_note() {
    if (facts_.gpu.empty() || facts_.probes.decode_s <= 0) return;
    if (!facts_.no_nvjpeg.empty())
      advice_.notes.push_back(
          fmt::format("No JPEGs were decoded on {}: {}.", facts_.gpu, facts_.no_nvjpeg));
    std::string rates;
    for (const auto& run : facts_.on_gpu)
      rates += fmt::format("{}{} samples/s with {}", rates.empty() ? "" : ", ",
                           format_count(run.samples_per_s), workers(run.workers));
    if (rates.empty()) return;
    advice_.notes.push_back(fmt::format(
        "With {} of the images decoded by nvJPEG on {}: {} (measured, with nothing else on that "
        "GPU; `howmany gpus --decode nvjpeg` tells what training loses).",
        percent(facts_.on_gpu.back().share), facts_.gpu, rates));
  }

  void add_notes() {
    if (facts_.bad > 0)
      advice_.notes.push_back(fmt::format(
          "{:.0f} of {:.0f} files could not be read and were left out, the first is {}; howmany "
          "train refuses such a folder unless --on-bad-image skip.",
          facts_.bad, facts_.looked_at, facts_.first_bad));
    if (demanded()) {
      const double cores = all() * core_s(facts_.probes);
      advice_.notes.push_back(fmt::format(
          "One worker makes a sample in {}: {} samples/s keep {:.2g} cores busy (predicted).",
          format_seconds(facts_.probes.sample_s), format_count(all()), cores));
    }
    if (facts_.cold_rate && best_->rate.value > kNoticeable * *facts_.cold_rate)
      advice_.notes.push_back(fmt::format(
          "First epoch: {} samples/s with files not in memory and {} ({} of the warm rate).",
          format_count(*facts_.cold_rate), workers(facts_.cold_workers),
          percent(*facts_.cold_rate / best_->rate.value)));
    add_gpu_note();
    if (facts_.as == "pytorch") return add(python_notes(facts_.python));
    advice_.notes.push_back(fmt::format(
        "Measured with {} and this program's decoder; PyTorch's processes add their own cost for "
        "each batch and for Python (--as pytorch has both).",
        facts_.as));
  }

  void add(const std::vector<std::string>& notes) {
    advice_.notes.insert(advice_.notes.end(), notes.begin(), notes.end());
  }

  void add_failures() {
    for (const WorkersPoint& p : facts_.points)
      if (!p.error.empty())
        advice_.notes.push_back(
            fmt::format("Failed: {}: {}.", number(p.workers, "worker"), p.error));
  }

  void add_lines() {
    const int w = *advice_.recommended;
    advice_.pytorch =
        fmt::format("DataLoader(dataset, batch_size={}, num_workers={}", facts_.asked.batch, w);
    if (w > 0)
      advice_.pytorch +=
          fmt::format(", prefetch_factor={}, persistent_workers=True", facts_.asked.prefetch);
    advice_.pytorch += ", pin_memory=True)";
    advice_.slurm =
        fmt::format("#SBATCH --ntasks-per-node={} --cpus-per-task={}", facts_.asked.devices, w + 1);
  }

  const WorkersFacts& facts_;
  std::vector<const WorkersPoint*> points_;  // measured, by workers
  const WorkersPoint* best_ = nullptr;
  WorkersAdvice advice_;
};

}  // namespace

WorkersAdvice advise_workers(const WorkersFacts& facts) { return Advisor(facts).advise(); }

}  // namespace howmany::reports
