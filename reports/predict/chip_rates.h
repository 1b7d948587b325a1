// SPDX-License-Identifier: Apache-2.0
// Published training rates on one GPU, made by scripts/studies/device-rates on 2026-11-28. Sources:
// NVIDIA/DeepLearningExamples@729963dd47, Lambda's deeplearning-benchmark, Oneflow-Inc/DLPerf,
// tensorpack's and TensorFlow's benchmark pages, all read 2026-09. For preset.cpp alone.
#pragma once

#include <string_view>

namespace howmany::reports {

struct ChipRate {
  std::string_view chip, work, precision;
  double tflop_per_s;
  int groups;  // models and sources
};

constexpr ChipRate kChipRates[] = {
    {"V100", "convolutions", "f32", 9.1, 5},
    {"V100", "convolutions", "mixed", 25.1, 3},
    {"V100", "products", "f32", 8.9, 6},
    {"V100", "products", "mixed", 38.2, 6},
    {"A100", "convolutions", "mixed", 52.5, 2},
    {"A100", "convolutions", "tf32", 25.1, 2},
    {"A100", "products", "mixed", 112.4, 5},
    {"A100", "products", "tf32", 55.4, 5},
    {"H100", "convolutions", "mixed", 68.4, 2},
    {"H100", "convolutions", "tf32", 46.5, 1},
    {"H100", "products", "mixed", 205.9, 2},
    {"H100", "products", "tf32", 100.3, 2},
    {"H200", "convolutions", "mixed", 75.6, 1},
    {"H200", "products", "mixed", 245.9, 2},
    {"B200", "convolutions", "mixed", 75.5, 1},
    {"B200", "products", "mixed", 367.8, 2},
    {"RTX 3090", "convolutions", "mixed", 27.3, 4},
    {"RTX 3090", "convolutions", "tf32", 12.6, 1},
    {"RTX 3090", "products", "mixed", 37.5, 2},
    {"RTX 3090", "products", "tf32", 17.9, 2},
    {"RTX 4090", "convolutions", "mixed", 31.9, 1},
    {"RTX 4090", "convolutions", "tf32", 17.7, 1},
    {"RTX 4090", "products", "mixed", 65.9, 2},
    {"RTX 4090", "products", "tf32", 30.8, 2},
    {"RTX A6000", "convolutions", "mixed", 22.5, 1},
    {"RTX A6000", "convolutions", "tf32", 12.6, 1},
    {"RTX A6000", "products", "mixed", 46.1, 2},
    {"RTX A6000", "products", "tf32", 22.9, 2},
    {"RTX 6000 Ada", "convolutions", "mixed", 28.1, 1},
    {"RTX 6000 Ada", "convolutions", "tf32", 15.9, 1},
    {"RTX 6000 Ada", "products", "mixed", 56.2, 2},
    {"RTX 6000 Ada", "products", "tf32", 30.7, 2},
};

// The interval holds 90 % of the ratios of a model's rate to the median of the others.
struct WorkRates {
  std::string_view name;
  double low, high;  // ratios to the median
  int ratios;
  double min_step, usual_step;  // TFLOP of a step: the smallest, the median
};

constexpr WorkRates kWorkRates[] = {
    {"convolutions", 0.73, 2.50, 27, 0.79, 3.1},
    {"products", 0.75, 1.33, 42, 1.48, 11.8},
};

// Milliseconds of a step that its batch does not change, on one GPU.
struct FixedTime {
  double ms, low, high;
  int curves;
};

constexpr FixedTime kFixedTime = {10.3, 0.2, 39.5, 21};

// Bandwidth of the memory, by NVIDIA's data sheets (of A100 and H100: 80 GB, SXM).
struct ChipMemory {
  std::string_view chip;
  double gb_per_s;
};

constexpr ChipMemory kChipMemory[] = {
    {"V100", 900},      {"A100", 2039},     {"H100", 3350},
    {"H200", 4800},     {"B200", 8000},     {"RTX 3090", 936},
    {"RTX 4090", 1008}, {"RTX A6000", 768}, {"RTX 6000 Ada", 960},
};

}  // namespace howmany::reports
