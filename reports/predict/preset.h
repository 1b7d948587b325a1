// SPDX-License-Identifier: Apache-2.0
// Predicts the training rate of a model of howmany on GPUs of which none is here, from published
// rates and times alone.
//
// Model. A step on one GPU takes 3 times the FLOP of its forward passes over the rate of the chip
//   for that kind of work (chip_rates.inc): a third in the forward pass, the rest in the backward
//   pass. The gradients of a unit of the model are ready one after the other while its FLOP are
//   done. They go into the buckets of DistributedDataParallel (a bucket ends with the parameter
//   that reaches 25 MiB, the first one 1 MiB), and the step is replayed with the times of the
//   cluster (replay.h). The loss is that of the replay plus that of the first rung (ladder.h):
//   published curves lose about 3 % per doubling also where all but the last bucket is hidden.
// Other modes. Steps of each number of GPUs are computed from the mode's own code (model_runs.h),
//   and their loss takes the place of that of the replay. Rows that do not fit the memory are
//   refused.
// Strong scaling. Each GPU trains its share of the global batch in equal micro-batches, as few as
//   PresetOptions::batch allows. Only the last one exchanges gradients, so the loss of the first
//   rung is divided by their number. Smaller ones are slower per sample: a part of their time is
//   fixed (HM_FIXED), which other modes spend in equal parts in each of their operations.
//   Efficiency is relative to the global batch on one GPU.
// Intervals. The rate on one GPU: 90 % of the ratios between the rates of published models on the
//   same chip. The efficiency: the interval of the first rung (ladder.h), and the part of a step
//   that is fixed, 90 % of it. The rate on n GPUs: both, as if independent.
// Limits. Steps smaller than any published one are refused: their time is not that of FLOP. The
//   loader is not considered.
// Source. Buckets: torch 2.13, nn/parallel/distributed.py. Three times the FLOP: Chowdhery et al.
//   2022, "PaLM", appendix B.
// Thread safety. The functions are pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reports/predict/forecast.h"

namespace howmany::reports {

struct ModelCosts {
  struct Unit {
    double forward_flop = 0;             // of one sample
    std::vector<double> gradient_bytes;  // of each parameter, in forward order
  };
  std::string model, work;  // "convolutions", "products" or "recurrences"
  std::vector<Unit> units;  // in forward order
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
  double least_samples = 0;  // of a published step
  double operator()(int64_t samples, double with_fixed) const {
    return with_fixed + (usual_seconds - with_fixed) * static_cast<double>(samples) / usual_samples;
  }
};

struct Preset {
  Cluster cluster;
  StepLog log;  // one step on one GPU
  Range per_s;  // on one GPU
  int64_t batch = 0, global_batch = 0;
  MicroBatchTime time;
  // The caller may set another mode, which needs its steps, by number of GPUs. With ddp, only the
  // reasons of steps count.
  std::string mode = kPlainMode;
  std::map<int, ModeStep> steps;
  std::string basis;  // one sentence: the published rates
};

// The work of each GPU in a step: equal micro-batches, the samples of each rounded up.
struct Portion {
  int64_t micro_batches = 1, samples = 0;  // of each
};
Portion portion_on(const Preset& preset, int devices);

// Throws InputError if no rate was published for that work, chip and precision, or if the step is
// smaller than any that was.
Preset preset(const ModelCosts& costs, const Cluster& cluster, const PresetOptions& options);

// Predicts 1, 2, 4, ... up to options.up_to GPUs, and decides.
Forecast forecast(const ModelCosts& costs, const Preset& preset, const ForecastOptions& options);

// Returns the rows of the mode with the highest rate on each number of GPUs, and decides. of_modes
// are forecasts of the same preset in these modes.
Forecast fastest_of(const std::vector<Forecast>& of_modes, const std::vector<std::string>& modes);

}  // namespace howmany::reports
