// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/preset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>

#include "core/base/schema/flags.h"
#include "core/base/text/format.h"
#include "reports/predict/chip_rates.h"
#include "reports/predict/decide.h"
#include "reports/predict/step_forecast.h"

namespace howmany::reports {
namespace {

constexpr double kFlopPerForward = 3;  // of a step: the backward pass has twice those of forward
constexpr double kTera = 1e12, kGiga = 1e9;
constexpr int64_t kMaxUsualBatch = 1 << 16;

const char* precision_in_table(const std::string& precision) {
  if (precision == "f32") return "f32";
  return precision == "tf32" ? "tf32" : "mixed";
}

const char* words_of(std::string_view precision) {
  return precision == "mixed" ? "mixed precision" : precision == "f32" ? "f32" : "TF32";
}

const WorkRates& rates_of(const ModelWork& model) {
  for (const WorkRates& one : kWorkRates)
    if (model.work == one.name) return one;
  throw InputError(fmt::format("{}: no rate of {} was published", model.model, model.work));
}

bool is_in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// True if the name has the chip as a whole word: an "NVIDIA GH200" is no H200. The rates are not
// those of the PCIe cards of chips that have another form too.
bool is_chip(const std::string& device, std::string_view chip) {
  if (device.find("PCIe") != std::string::npos || device.find("PCIE") != std::string::npos)
    return false;
  const size_t at = device.find(chip), end = at + chip.size();
  return at != std::string::npos && (at == 0 || !is_in_word(device[at - 1])) &&
         (end == device.size() || !is_in_word(device[end]));
}

const ChipRate& rate_of(const ModelWork& model, const Cluster& cluster,
                        const std::string& precision) {
  const std::string wanted = precision_in_table(precision);
  const auto is_it = [&](const ChipRate& one) { return is_chip(cluster.device, one.chip); };
  for (const ChipRate& one : kChipRates)
    if (is_it(one) && model.work == one.work && wanted == one.precision) return one;
  if (std::ranges::none_of(kChipRates, is_it))
    throw InputError(
        fmt::format("no rate of one {} was published. Ask about your own script, on "
                    "one: howmany gpus {} N {} {} -- python train.py",
                    cluster.device, flag::kUpTo.name, flag::kCluster.name, cluster.name));
  throw InputError(fmt::format("no rate of {} on {} in {} was published: choose another {} or {}",
                               model.work, cluster.device, words_of(wanted), flag::kPrecision.name,
                               flag::kCluster.name));
}

double flop_per_byte(const ChipRate& rate) {
  for (const ChipMemory& one : kChipMemory)
    if (one.chip == rate.chip) return rate.tflop_per_s * kTera / (one.gb_per_s * kGiga);
  return 0;
}

int64_t usual_batch(const WorkRates& work, double per_sample) {
  const double most = std::clamp(work.usual_step / per_sample, 1.0, 1.0 * kMaxUsualBatch);
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most)));
}

// Why a step that small is not predicted; empty if it is.
std::string small_step(const MicroBatchTime& time, int64_t samples) {
  if (static_cast<double>(samples) >= time.min_samples) return "";
  return fmt::format(
      "a step of {} is smaller than the published ones, of {:.0f} of this model or more: it waits "
      "for kernels to start",
      number(samples, "sample"), std::ceil(time.min_samples));
}

MicroBatchTime time_of(const WorkRates& work, double per_sample, int64_t batch, double per_s) {
  MicroBatchTime time;
  time.usual_samples = static_cast<double>(batch);
  time.usual_seconds = time.usual_samples / per_s;
  time.min_samples = work.min_step / per_sample;
  const double most = time.usual_seconds / 2;  // of chips so fast that no more is plausible
  time.fixed = {std::min(kFixedTime.ms / 1000, most), std::min(kFixedTime.low / 1000, most),
                std::min(kFixedTime.high / 1000, most)};
  return time;
}

double seconds_on_one(const Preset& p, double fixed) {
  const Portion all = portion_on(p, 1);
  return static_cast<double>(all.micro_batches) * p.time(all.samples, fixed);
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

// The samples of strong scaling are those of an equal share, although portion_on() rounds up.
StepOn step_on(const Preset& p, int devices) {
  StepOn step;
  if (p.global_batch > 0) step.samples = 1.0 / devices;
  if (const auto found = p.steps.find(devices); found != p.steps.end())
    step.seconds = found->second.seconds, step.why = found->second.why;
  if (devices == 1) {
    const Range& fixed = p.time.fixed;
    step.seconds = {seconds_on_one(p, fixed.value), seconds_on_one(p, fixed.low),
                    seconds_on_one(p, fixed.high)};
    return step;
  }
  step.why = why_not(p, devices);
  step.micro_batches = static_cast<double>(portion_on(p, devices).micro_batches);
  return step;
}

}  // namespace

Portion portion_on(const Preset& p, int devices) {
  if (p.global_batch == 0) return {1, p.batch};
  const int64_t all = (p.global_batch + devices - 1) / devices;
  const int64_t micro_batches = (all + p.batch - 1) / p.batch;
  return {micro_batches, (all + micro_batches - 1) / micro_batches};
}

Preset preset(const ModelWork& model, const Cluster& cluster, const PresetOptions& options) {
  const WorkRates& work = rates_of(model);
  const ChipRate& rate = rate_of(model, cluster, options.precision);
  const double per_sample = kFlopPerForward * model.forward_flop / kTera;
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
        std::ceil(p.time.min_samples)));
  p.seconds = seconds_on_one(p, p.time.fixed.value);
  p.flop_per_byte = flop_per_byte(rate);
  const double samples = static_cast<double>(p.global_batch > 0 ? p.global_batch : p.batch);
  const double per_s = samples / p.seconds;
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

Forecast forecast(const std::string& model, const Preset& p, const ForecastOptions& options) {
  UnmeasuredSteps steps{.what = model,
                        .cluster = p.cluster,
                        .per_s = p.per_s,
                        .steps = {{1, step_on(p, 1)}},
                        .strong = p.global_batch > 0,
                        .basis = p.basis,
                        .next = ""};
  for (const int n : counts_up_to(options.up_to, 1)) steps.steps[n] = step_on(p, n);
  return forecast(steps, options);
}

Forecast fastest_of(const std::vector<Forecast>& of_modes, const std::vector<std::string>& modes) {
  Forecast f = of_modes.front();
  for (size_t at = 0; at < f.rows.size(); ++at) {
    ForecastRow& best = f.rows[at];
    if (best.devices == 1) continue;  // `single`
    std::string why;
    for (size_t i = 0; i < modes.size(); ++i) {
      const ForecastRow& row = of_modes[i].rows[at];
      why += fmt::format("{}{}: {}", i == 0 ? "" : "; ", modes[i], row.refused);
      if (!row.refused.empty() || (!best.mode.empty() && row.per_s.value <= best.per_s.value))
        continue;
      best = row;
      best.mode = modes[i];
    }
    if (best.mode.empty()) best.refused = why;
  }
  f.basis += fmt::format(" Each row is the fastest of {}.", fmt::join(modes, ", "));
  decide(f);
  return f;
}

}  // namespace howmany::reports
