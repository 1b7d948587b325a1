// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/levers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/text/format.h"
#include "reports/workers/limit.h"
#include "reports/workers/model.h"
#include "reports/workers/notes.h"

namespace howmany::reports {
namespace {

constexpr double kUneven = 0.3;  // coefficient of variation of batches
constexpr size_t kLevers = 3;
// Size of a photo that is stored as small as training allows, relative to the sample's side.
constexpr double kStoredSide = 256.0 / 224, kStoredAspect = 4.0 / 3;

class Finder {
 public:
  Finder(const WorkersFacts& facts, const WorkersPoint& best, int recommended)
      : facts_(facts), best_(best), limit_(facts, best), recommended_(recommended) {}

  std::vector<WorkersLever> find() && {
    const LoaderProbes& p = facts_.probes;
    const double side = std::sqrt(p.sample_bytes / (3 * 4));  // of f32 [size,size,3]
    const double pixels = kStoredAspect * std::pow(kStoredSide * side, 2);
    if (p.pixels > pixels) {
      const double part = pixels / p.pixels;
      add_lever(
          fmt::format("store the images with a short side of {:.0f} pixels ({:.0f} % of the "
                      "pixels)",
                      kStoredSide * side, 100 * part),
          gain_of((p.read_s - limit_.hidden_s() + p.decode_s) * part + p.transform_s + p.rest_s));
    }
    if (p.decode_s > 0 && p.collate_s > 0)
      add_lever(
          fmt::format("keep decoded 8-bit samples in memory{}",
                      facts_.files > 0
                          ? fmt::format(" ({}B)", format_count(facts_.files * p.sample_bytes / 4))
                          : ""),
          gain_of(p.transform_s / 4 + p.collate_s));
    if (p.waiting_s <= 0 || limit_.is_cores())
      add_lever(fmt::format("twice the cores ({:.2g})", 2 * p.cores),
                std::min(2.0, transfer_bound(p) / (limit_.samples_per_s_per_device())));
    if (facts_.cold_rate)
      add_lever("storage as fast as memory, for the first epoch",
                rate_of(best_).value / *facts_.cold_rate);
    add_prefetch_lever();
    std::stable_sort(levers_.begin(), levers_.end(),
                     [](const auto& a, const auto& b) { return a.gain > b.gain; });
    levers_.resize(std::min(levers_.size(), kLevers));
    return std::move(levers_);
  }

 private:
  void add_lever(const std::string& what, double gain) {
    if (gain > kNoticeable && std::isfinite(gain)) levers_.push_back({what, gain});
  }

  // While the cores are the limit, the rate changes inversely with the time of a sample. The
  // transfer of batches bounds the rate.
  double gain_of(double sample_s) const {
    const double now = limit_.samples_per_s_per_device();
    const double then =
        now * (facts_.probes.sample_s - limit_.hidden_s()) / std::max(sample_s, 1e-9);
    return std::min(then, transfer_bound(facts_.probes)) / now;
  }

  void add_prefetch_lever() {
    if (facts_.asked.demand <= 0 || coefficient_of_batches(facts_.probes) < kUneven) return;
    LoaderDemand deeper = facts_.asked;
    deeper.prefetch *= 2;
    const int w = recommended_;
    const double now = predicted_stall(facts_.probes, facts_.asked, w);
    const double then = predicted_stall(facts_.probes, deeper, w);
    add_lever(fmt::format("prefetch_factor={}, since batches take unevenly long", deeper.prefetch),
              (1 - then) / std::max(1 - now, 1e-3));
  }

  const WorkersFacts& facts_;
  const WorkersPoint& best_;
  const RateLimit limit_;
  const int recommended_;
  std::vector<WorkersLever> levers_;
};

}  // namespace

std::vector<WorkersLever> levers_of(const WorkersFacts& facts, const WorkersPoint& best,
                                    int recommended) {
  return Finder(facts, best, recommended).find();
}

}  // namespace howmany::reports
