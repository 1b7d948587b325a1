// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/preset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <numeric>
#include <ranges>

#include "core/base/schema/flags.h"
#include "core/base/text/format.h"
#include "reports/predict/decide.h"

namespace howmany::reports {
namespace {

constexpr double kBackwardPerForward = 2;
constexpr double kFirstBucket = 1 << 20, kBucket = 25 << 20;
constexpr double kTera = 1e12;
constexpr int64_t kMostOfBatch = 1 << 16;

struct ChipRate {
  const char *chip, *work, *precision;
  double tflop_per_s;
  int groups;
};
struct Work {
  const char* name;
  double low, high;  // ratios to the median
  int ratios;
  double least_step, usual_step;  // TFLOP
};

struct Fixed {
  double ms, low, high;
};

#define HM_CHIP_RATE(chip, work, precision, rate, groups) {chip, #work, #precision, rate, groups},
#define HM_WORK(...)
#define HM_FIXED(...)
constexpr ChipRate kRates[] = {
#include "reports/predict/chip_rates.inc"
};
#undef HM_CHIP_RATE
#undef HM_WORK
#define HM_CHIP_RATE(...)
#define HM_WORK(name, ...) {#name, __VA_ARGS__},
constexpr Work kWorks[] = {
#include "reports/predict/chip_rates.inc"
};
#undef HM_WORK
#undef HM_FIXED
#define HM_WORK(...)
#define HM_FIXED(ms, low, high, curves) \
  { ms, low, high }
constexpr Fixed kFixed =
#include "reports/predict/chip_rates.inc"
    ;
#undef HM_CHIP_RATE
#undef HM_WORK
#undef HM_FIXED

const char* precision_in_table(const std::string& precision) {
  if (precision == "f32") return "f32";
  return precision == "tf32" ? "tf32" : "mixed";
}

const char* words_of(const std::string& precision) {
  return precision == "mixed" ? "mixed precision" : precision == "f32" ? "f32" : "TF32";
}

const Work& work_of(const ModelCosts& costs) {
  for (const Work& one : kWorks)
    if (costs.work == one.name) return one;
  throw InputError(fmt::format("{}: no rate of {} was published", costs.model, costs.work));
}

bool is_in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// True if the name has the chip as a whole word: an "NVIDIA GH200" is no H200. The rates are not
// those of the PCIe cards of chips that have another form too.
bool is_chip(const std::string& device, const std::string& chip) {
  if (device.find("PCIe") != std::string::npos || device.find("PCIE") != std::string::npos)
    return false;
  const size_t at = device.find(chip), end = at + chip.size();
  return at != std::string::npos && (at == 0 || !is_in_word(device[at - 1])) &&
         (end == device.size() || !is_in_word(device[end]));
}

const ChipRate& rate_of(const ModelCosts& costs, const Cluster& cluster,
                        const std::string& precision) {
  const std::string wanted = precision_in_table(precision);
  for (const ChipRate& one : kRates)
    if (is_chip(cluster.device, one.chip) && costs.work == one.work && wanted == one.precision)
      return one;
  throw InputError(fmt::format("no rate of {} on {} in {} was published: choose another {} or {}",
                               costs.work, cluster.device, words_of(wanted), flag::kPrecision.name,
                               flag::kCluster.name));
}

double forward_flop(const ModelCosts& costs) {
  double sum = 0;
  for (const ModelCosts::Unit& unit : costs.units) sum += unit.forward_flop;
  return sum;
}

int64_t usual_batch(const Work& work, double per_sample) {
  const double most = std::clamp(work.usual_step / per_sample, 1.0, 1.0 * kMostOfBatch);
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most)));
}

// Why a step that small is not predicted; empty if it is.
std::string small_step(const MicroBatchTime& time, int64_t samples) {
  if (static_cast<double>(samples) >= time.least_samples) return "";
  return fmt::format(
      "a step of {} is smaller than the published ones, of {:.0f} of this model or more: it waits "
      "for kernels to start",
      number(samples, "sample"), std::ceil(time.least_samples));
}

MicroBatchTime time_of(const Work& work, double per_sample, int64_t batch, double per_s) {
  MicroBatchTime time;
  time.usual_samples = static_cast<double>(batch);
  time.usual_seconds = time.usual_samples / per_s;
  time.least_samples = work.least_step / per_sample;
  const double most = time.usual_seconds / 2;  // of chips so fast that no more is plausible
  time.fixed = {std::min(kFixed.ms / 1000, most), std::min(kFixed.low / 1000, most),
                std::min(kFixed.high / 1000, most)};
  return time;
}

// The buckets of a backward pass, in the order in which they fill.
class Buckets {
 public:
  // The gradients of a parameter are ready at the time `at`.
  void add(double bytes, double at) {
    filled_ += bytes;
    ready_ = at;
    if (filled_ >= (closed_.empty() ? kFirstBucket : kBucket)) close();
  }
  std::vector<LoggedCollective> all() {
    if (filled_ > 0) close();
    return std::move(closed_);
  }

 private:
  void close() {
    LoggedCollective one;
    one.bytes = filled_;
    one.at = ready_;
    one.backward = 0;
    closed_.push_back(one);
    filled_ = 0;
  }

  double filled_ = 0, ready_ = 0;
  std::vector<LoggedCollective> closed_;
};

LoggedStep step_of(const ModelCosts& costs, double of_micro_batch, int64_t micro_batches) {
  const double seconds = of_micro_batch * static_cast<double>(micro_batches);
  const double per_flop = of_micro_batch / (1 + kBackwardPerForward) / forward_flop(costs);
  double now = seconds - of_micro_batch * kBackwardPerForward / (1 + kBackwardPerForward);
  Buckets buckets;
  for (auto unit = costs.units.rbegin(); unit != costs.units.rend(); ++unit) {
    const double then = now + kBackwardPerForward * per_flop * unit->forward_flop;
    const double all = std::reduce(unit->gradient_bytes.begin(), unit->gradient_bytes.end());
    double done = 0;
    for (const double bytes : std::views::reverse(unit->gradient_bytes)) {
      done += bytes;
      buckets.add(bytes, now + (then - now) * done / all);
    }
    now = then;
  }
  return {seconds, buckets.all()};
}

// The interval of a product of two that are independent.
Range product(const Range& a, const Range& b, double times) {
  const auto away = [](double a_end, double a_value, double b_end, double b_value) {
    return std::exp(std::hypot(std::log(a_end / a_value), std::log(b_end / b_value)));
  };
  const double value = a.value * b.value * times;
  return {value, value / away(a.low, a.value, b.low, b.value),
          value * away(a.high, a.value, b.high, b.value)};
}

StepLog log_on(const ModelCosts& costs, const Preset& p, int devices, double fixed) {
  const Portion each = portion_on(p, devices);
  return {1, {step_of(costs, p.time(each.samples, fixed), each.micro_batches)}};
}

// The loss of efficiency by exchanges, and by shares that differ from that of one GPU. `fixed` is
// an end or the value of p.time.fixed.
double computed_loss(const ModelCosts& costs, const Preset& p, int devices, double Range::*fixed) {
  const double of_step = p.time.fixed.*fixed;
  const double one = logged_seconds(log_on(costs, p, 1, of_step));
  const double more = p.mode == kPlainMode
                          ? replayed_seconds(log_on(costs, p, devices, of_step), p.cluster, devices)
                          : p.steps.at(devices).seconds.*fixed;
  return std::log(more / one) + (p.global_batch > 0 ? std::log(devices) : 0);
}

std::string why_not(const Preset& p, int devices) {
  if (p.global_batch > 0 && p.global_batch < devices)
    return fmt::format("a batch of {} has none for some of them", number(p.global_batch, "sample"));
  if (const std::string why = small_step(p.time, portion_on(p, devices).samples); !why.empty())
    return why;
  if (const auto step = p.steps.find(devices); step != p.steps.end() && !step->second.why.empty())
    return step->second.why;
  return p.cluster.refusal(devices);
}

Offer offer_on(const ModelCosts& costs, const Preset& p, int devices, int devices_per_node) {
  Offer offer;
  offer.devices = devices;
  if (devices == 1) {
    offer.per_s = p.per_s;
    offer.efficiency = {1, 1, 1};
    if (const auto step = p.steps.find(1); step != p.steps.end()) offer.refused = step->second.why;
    return offer;
  }
  offer.refused = why_not(p, devices);
  if (!offer.refused.empty()) return offer;
  const std::vector<RateAt> one = {{1, p.per_s.value}};
  offer = {predict(one, devices, devices_per_node), Evidence::kPredicted};
  if (!offer.refused.empty()) return offer;
  const auto computed = [&](double Range::*fixed) {
    return computed_loss(costs, p, devices, fixed);
  };
  const double value = computed(&Range::value);
  const auto [low, high] = std::minmax({value, computed(&Range::low), computed(&Range::high)});
  const auto exchanged = static_cast<double>(portion_on(p, devices).micro_batches);
  const double loss = value - std::log(offer.efficiency.value) / exchanged;
  offer = {predict(one, devices, devices_per_node, loss), Evidence::kPredicted};
  offer.efficiency =
      product(offer.efficiency, {1, std::exp(value - high), std::exp(value - low)}, 1);
  offer.per_s = product(p.per_s, offer.efficiency, devices);
  return offer;
}

}  // namespace

Portion portion_on(const Preset& p, int devices) {
  if (p.global_batch == 0) return {1, p.batch};
  const int64_t all = (p.global_batch + devices - 1) / devices;
  const int64_t micro_batches = (all + p.batch - 1) / p.batch;
  return {micro_batches, (all + micro_batches - 1) / micro_batches};
}

Preset preset(const ModelCosts& costs, const Cluster& cluster, const PresetOptions& options) {
  const Work& work = work_of(costs);
  const ChipRate& rate = rate_of(costs, cluster, options.precision);
  const double per_sample = (1 + kBackwardPerForward) * forward_flop(costs) / kTera;
  Preset p;
  p.cluster = cluster;
  p.global_batch = options.global_batch;
  p.batch = options.batch > 0 ? options.batch : usual_batch(work, per_sample);
  if (p.global_batch > 0) p.batch = std::min(p.batch, p.global_batch);
  p.time = time_of(work, per_sample, p.batch, rate.tflop_per_s / per_sample);
  if (const std::string why = small_step(p.time, p.batch); !why.empty())
    throw InputError(fmt::format(
        "{}. Give {} {:.0f} or more", why,
        p.batch == p.global_batch ? flag::kGlobalBatch.name : flag::kBatchPerDevice.name,
        std::ceil(p.time.least_samples)));
  p.log = log_on(costs, p, 1, p.time.fixed.value);
  const double samples = static_cast<double>(p.global_batch > 0 ? p.global_batch : p.batch);
  const double per_s = samples / logged_seconds(p.log);
  p.per_s = {per_s, per_s * work.low, per_s * work.high};
  p.basis = fmt::format(
      "Nothing was measured. One {} trains {} samples/s (90 % interval {} to {}) by {} of other "
      "models, in {} with {} per GPU{}.",
      rate.chip, format_count(per_s), format_count(p.per_s.low), format_count(p.per_s.high),
      number(rate.groups, "published rate"), words_of(rate.precision), number(p.batch, "sample"),
      p.global_batch == 0 ? "" : " at a time");
  if (p.global_batch > 0)
    p.basis += fmt::format(" Every row trains {} per step.", number(p.global_batch, "sample"));
  return p;
}

Forecast forecast(const ModelCosts& costs, const Preset& p, const ForecastOptions& options) {
  Forecast f;
  f.what = costs.model;
  f.strong = p.global_batch > 0;
  f.cluster = p.cluster.name;
  f.options = options;
  f.basis = p.basis;
  f.offers.push_back(offer_on(costs, p, 1, options.devices_per_node));
  for (const int n : counts_up_to(options.up_to, 1))
    f.offers.push_back(offer_on(costs, p, n, options.devices_per_node));
  decide(f);
  return f;
}

Forecast fastest_of(const std::vector<Forecast>& of_modes, const std::vector<std::string>& modes) {
  Forecast f = of_modes.front();
  for (size_t row = 0; row < f.offers.size(); ++row) {
    Offer& best = f.offers[row];
    if (best.devices == 1) continue;  // `single`
    std::string why;
    for (size_t i = 0; i < modes.size(); ++i) {
      const Offer& offer = of_modes[i].offers[row];
      why += fmt::format("{}{}: {}", i == 0 ? "" : "; ", modes[i], offer.refused);
      if (!offer.refused.empty() || (!best.mode.empty() && offer.per_s.value <= best.per_s.value))
        continue;
      best = offer;
      best.mode = modes[i];
    }
    if (best.mode.empty()) best.refused = why;
  }
  f.basis += fmt::format(" Each row is the fastest of {}.", fmt::join(modes, ", "));
  decide(f);
  return f;
}

}  // namespace howmany::reports
