// SPDX-License-Identifier: Apache-2.0
// Predicts the training rate of a model of howmany on GPUs of which none is here, from published
// rates and times alone.
//
// Model. A step on one GPU takes 3 times the FLOP of its forward passes over the rate of the chip
//   for that kind of work (chip_rates.h). The steps on each number of GPUs are computed from the
//   mode's own code with the times of the cluster (model_runs.h), and step_forecast.h predicts from
//   them.
// Rows that do not fit the memory are refused.
// Strong scaling. Each GPU trains its share of the global batch in equal micro-batches, as few as
//   PresetOptions::batch allows. Only the last one exchanges gradients, so the published part of
//   the loss is divided by their number. Smaller ones are slower per sample: a part of their time
//   is fixed (kFixedTime), in equal parts in each of their operations. Efficiency is relative to
//   the global batch on one GPU.
// Intervals. The rate on one GPU: 90 % of the ratios between the rates of published models on the
//   same chip. The efficiency: step_forecast.h, with 90 % of the fixed part of a step.
// Limits. Steps smaller than any published one are refused: their time is not that of FLOP. The
//   loader is not considered.
// Source. Three times the FLOP: Chowdhery et al. 2022, "PaLM", appendix B.
// Thread safety. The functions are pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reports/predict/forecast.h"

namespace howmany::reports {

struct ModelWork {
  std::string model, work;  // "convolutions", "products" or "recurrences"
  double forward_flop = 0;  // of one sample
};
constexpr const char* kPlainMode = "ddp";

struct PresetOptions {
  std::string precision;  // f32, tf32 or bf16 (mixed precision with f16 too); empty: bf16
  // Samples per GPU; 0: a power of two, for a step as large as published ones. With a global batch,
  // the most of a micro-batch.
  int64_t batch = 0;
  int64_t global_batch = 0;  // samples per step of all GPUs (strong scaling); 0: weak scaling
};

// A step of a mode on a number of GPUs.
struct ModeStep {
  Range seconds;    // with each of MicroBatchTime::fixed
  std::string why;  // it does not run or fit; then seconds is void
};

// Seconds of a micro-batch, forward and backward: from `fixed` on, linear in its samples.
struct MicroBatchTime {
  double usual_samples = 1, usual_seconds = 0;  // of Preset::batch, at the published rate
  Range fixed;
  double min_samples = 0;  // of a published step
  double operator()(int64_t samples, double with_fixed) const {
    return with_fixed + (usual_seconds - with_fixed) * static_cast<double>(samples) / usual_samples;
  }
};

struct Preset {
  Cluster cluster;
  double seconds = 0;  // of a step on one GPU
  Range per_s;         // on one GPU
  int64_t batch = 0, global_batch = 0;
  MicroBatchTime time;
  double flop_per_byte = 0;  // of the chip, in that precision; 0: not known
  std::string mode = kPlainMode;
  std::map<int, ModeStep> steps;  // of the mode, by number of GPUs; the caller sets them
  std::string basis;              // one sentence: the published rates
};

// The work of each GPU in a step: equal micro-batches, the samples of each rounded up.
struct Portion {
  int64_t micro_batches = 1, samples = 0;  // of each
};
Portion portion_on(const Preset& preset, int devices);

// Throws InputError if no rate was published for that work, chip and precision, or if the step is
// smaller than any that was.
Preset preset(const ModelWork& model, const Cluster& cluster, const PresetOptions& options);

// Predicts 1, 2, 4, ... up to options.up_to GPUs, and decides. Requires a step for each number but
// 1.
Forecast forecast(const std::string& model, const Preset& preset, const ForecastOptions& options);

// Returns the rows of the mode with the highest rate on each number of GPUs, and decides. of_modes
// are forecasts of the same preset in these modes.
Forecast fastest_of(const std::vector<Forecast>& of_modes, const std::vector<std::string>& modes);

}  // namespace howmany::reports
