// SPDX-License-Identifier: Apache-2.0
// Rates that turn the operations of a training step into seconds, made by scripts/studies/op-rates
// on 2026-11-30. The peaks of chips are those of data sheets; the rest was fitted to 509 published
// training rates of 15 sources.
//
// The model. An operation has a kind of work, a dtype, FLOP, and bytes = read + written.
//   a (+)p b  = (a^p + b^p)^(1/p)
//   full      = flop / (1e12 * efficiency * peak of the dtype); 0 for "memory" and "unknown"
//   compute   = full * (1 + kSizeLoss * size_s / (full + size_s)): small ones do not fill the chip.
//               size_s is that of kSizeSeconds, 0 for "attention"
//   memory    = bytes / (1e9 * efficiency of "memory" * gb_per_s)
//   operation = compute (+)kRooflinePower memory + layout + kernel_s
//   gpu       = the sum of all operations of the step, collectives apart
//   host      = host_ops * kHostOpSeconds
//   step      = gpu (+)kOverlapPower host, times low and high of an interval
// Efficiencies. The row of kEfficiencies with the chip's generation, or "any" if it has none.
//   "tensor" counts for tf32, f16, bf16 and f8. "plain" counts for other dtypes, and for all dtypes
//   of Kepler, Maxwell and Pascal. It may exceed 1: Winograd's convolutions need fewer FLOP.
// Layouts. If the efficiency is a "tensor" one and the operation's name ends with "_nchw", layout =
//   kNchwPasses * memory, else 0.
// Peaks. 0 means that the chip has no units for the dtype. Then f8 counts as f16; tf32, f16, bf16
//   and f64 count as f32, as all integers do. So does the efficiency.
// Compiled steps. If torch.compile was called, bytes and kernel_s of "memory" and "unknown" of the
//   forward and backward pass are multiplied by kCompiled.memory, and host_ops by kCompiled.host.
// Names. A chip is a device if all words of its name are words of the device's name, without case.
//   Words are divided by spaces and dashes. If there are several, that with the most words counts.
// Intervals. kHostBound if host > gpu / 2: hosts differ most. Else kKnownChip if the chip has rows,
//   else kNewChip. They hold 90 % of the ratios of the measured step to the predicted one, in
//   sources (kNewChip: sources and chips) that the fit had left out.
#pragma once

#include <string_view>

namespace howmany::reports {

struct ChipPeak {
  std::string_view name, generation;
  double f64, f32, tf32, f16, bf16, f8;  // TFLOP/s, dense, with f32 accumulation; 0: none
  double gb_per_s;
  int rows, sources;  // published training rates in the fit
  std::string_view source;
};

struct Efficiency {  // shares of the peak
  std::string_view generation;
  double product_plain, product_tensor, convolution_plain, convolution_tensor;
  double attention_plain, attention_tensor, memory;
};

struct KernelSeconds {                             // of each operation, whatever its size
  double product, convolution, attention, memory;  // "unknown" is as "memory"
};

struct SizeSeconds {
  double product, convolution;
};

struct CompiledShare {
  double memory, host;
};

struct OpInterval {  // factors of the predicted step
  double low, high;
  int rows;
};

constexpr ChipPeak kChipPeaks[] = {
    {"K80", "Kepler", 0.94, 2.8, 0, 0, 0, 0, 240, 17, 1,
     "NVIDIA Tesla K80 data sheet: one of its two GPUs without boost"},
    {"M40", "Maxwell", 0.2, 7.0, 0, 0, 0, 0, 288, 0, 0, "NVIDIA Tesla M40 data sheet"},
    {"GTX 1080 Ti", "Pascal", 0.35, 11.3, 0, 0, 0, 0, 484, 14, 3,
     "NVIDIA GeForce GTX 1080 Ti product page"},
    {"TITAN Xp", "Pascal", 0.38, 12.15, 0, 0, 0, 0, 548, 11, 1, "NVIDIA TITAN Xp product page"},
    {"P100", "Pascal", 5.3, 10.6, 0, 21.2, 0, 0, 732, 12, 2, "NVIDIA Tesla P100 data sheet"},
    {"P100 PCIE", "Pascal", 4.7, 9.3, 0, 18.7, 0, 0, 732, 0, 0, "NVIDIA Tesla P100 data sheet"},
    {"P40", "Pascal", 0.37, 11.8, 0, 0, 0, 0, 346, 0, 0, "NVIDIA Tesla P40 data sheet"},
    {"V100", "Volta", 7.8, 15.7, 0, 125, 0, 0, 900, 45, 5, "NVIDIA V100 data sheet"},
    {"V100 PCIE", "Volta", 7.0, 14.0, 0, 112, 0, 0, 900, 0, 0, "NVIDIA V100 data sheet"},
    {"V100S", "Volta", 8.2, 16.4, 0, 130, 0, 0, 1134, 0, 0, "NVIDIA V100 data sheet"},
    {"TITAN V", "Volta", 7.4, 14.9, 0, 110, 0, 0, 653, 22, 2, "NVIDIA TITAN V product page"},
    {"T4", "Turing", 0.25, 8.1, 0, 65, 0, 0, 320, 0, 0, "NVIDIA T4 data sheet"},
    {"RTX 2080 Ti", "Turing GeForce", 0.42, 13.4, 0, 53.8, 0, 0, 616, 34, 3,
     "NVIDIA Turing architecture whitepaper: f16 with f32 accumulation"},
    {"Quadro RTX 5000", "Turing", 0.35, 11.2, 0, 89.2, 0, 0, 448, 6, 1,
     "NVIDIA Turing architecture whitepaper"},
    {"TITAN RTX", "Turing", 0.51, 16.3, 0, 130.5, 0, 0, 672, 28, 2,
     "NVIDIA Turing architecture whitepaper"},
    {"Quadro RTX 6000", "Turing", 0.51, 16.3, 0, 130.5, 0, 0, 672, 6, 1,
     "NVIDIA Turing architecture whitepaper"},
    {"Quadro RTX 8000", "Turing", 0.51, 16.3, 0, 130.5, 0, 0, 672, 12, 2,
     "NVIDIA Turing architecture whitepaper"},
    {"A100", "Ampere", 9.7, 19.5, 156, 312, 312, 0, 2039, 14, 2,
     "NVIDIA A100 data sheet: 80 GB SXM"},
    {"A100 40GB", "Ampere", 9.7, 19.5, 156, 312, 312, 0, 1555, 38, 5, "NVIDIA A100 data sheet"},
    {"A100 PCIE 80GB", "Ampere", 9.7, 19.5, 156, 312, 312, 0, 1935, 6, 1, "NVIDIA A100 data sheet"},
    {"A100 PCIE 40GB", "Ampere", 9.7, 19.5, 156, 312, 312, 0, 1555, 12, 2,
     "NVIDIA A100 data sheet"},
    {"A30", "Ampere", 5.2, 10.3, 82, 165, 165, 0, 933, 0, 0, "NVIDIA A30 data sheet"},
    {"A10", "Ampere RTX", 0.49, 31.2, 62.5, 125, 125, 0, 600, 6, 1, "NVIDIA A10 data sheet"},
    {"A10G", "Ampere RTX", 0.49, 31.5, 35, 70, 70, 0, 600, 0, 0, "NVIDIA A10G data sheet"},
    {"A40", "Ampere RTX", 0.58, 37.4, 74.8, 149.7, 149.7, 0, 696, 6, 1, "NVIDIA A40 data sheet"},
    {"RTX A6000", "Ampere RTX", 0.6, 38.7, 77.4, 154.8, 154.8, 0, 768, 11, 2,
     "NVIDIA Ampere GA102 whitepaper"},
    {"RTX A5000", "Ampere RTX", 0.43, 27.8, 55.6, 111.1, 111.1, 0, 768, 6, 1,
     "NVIDIA RTX A5000 data sheet"},
    {"RTX A4500", "Ampere RTX", 0.37, 23.7, 47.3, 94.6, 94.6, 0, 640, 6, 1,
     "NVIDIA RTX A4500 data sheet"},
    {"RTX A4000", "Ampere RTX", 0.3, 19.2, 38.3, 76.7, 76.7, 0, 448, 0, 0,
     "NVIDIA RTX A4000 data sheet"},
    {"RTX 3070", "GeForce", 0.32, 20.3, 20.3, 40.6, 40.6, 0, 448, 6, 1,
     "NVIDIA Ampere GA102 whitepaper: f16 with f32 accumulation"},
    {"RTX 3080", "GeForce", 0.47, 29.8, 29.8, 59.5, 59.5, 0, 760, 6, 1,
     "NVIDIA Ampere GA102 whitepaper: f16 with f32 accumulation"},
    {"RTX 3080 Ti", "GeForce", 0.53, 34.1, 34.1, 68.2, 68.2, 0, 912, 0, 0,
     "NVIDIA Ampere GA102 whitepaper: scaled by SMs and clock"},
    {"RTX 3090", "GeForce", 0.56, 35.6, 35.6, 71, 71, 0, 936, 143, 4,
     "NVIDIA Ampere GA102 whitepaper: f16 with f32 accumulation"},
    {"RTX 3090 Ti", "GeForce", 0.63, 40, 40, 80, 80, 0, 1008, 0, 0,
     "NVIDIA GeForce RTX 3090 Ti: GA102 at 1.86 GHz"},
    {"RTX 4070 Ti", "GeForce", 0.63, 40.1, 40.1, 80.2, 80.2, 160.4, 504, 0, 0,
     "NVIDIA Ada GPU architecture whitepaper: f16 with f32 accumulation"},
    {"RTX 4080", "GeForce", 0.76, 48.7, 48.7, 97.5, 97.5, 194.9, 717, 0, 0,
     "NVIDIA Ada GPU architecture whitepaper: f16 with f32 accumulation"},
    {"RTX 4090", "GeForce", 1.3, 82.6, 82.6, 165.2, 165.2, 330.3, 1008, 6, 1,
     "NVIDIA Ada GPU architecture whitepaper: f16 with f32 accumulation"},
    {"RTX 5000 Ada", "Ada", 1.0, 65.3, 130.6, 261.1, 261.1, 522.1, 576, 0, 0,
     "NVIDIA RTX 5000 Ada data sheet"},
    {"RTX 6000 Ada", "Ada", 1.4, 91.1, 182.1, 364.2, 364.2, 728.5, 960, 6, 1,
     "NVIDIA RTX 6000 Ada data sheet"},
    {"L4", "Ada", 0.47, 30.3, 60, 121, 121, 242.5, 300, 0, 0, "NVIDIA L4 data sheet"},
    {"L40", "Ada", 1.4, 90.5, 90.5, 181, 181, 362, 864, 0, 0, "NVIDIA L40 data sheet"},
    {"L40S", "Ada", 1.4, 91.6, 183, 362, 362, 733, 864, 0, 0, "NVIDIA L40S data sheet"},
    {"H100", "Hopper", 34, 66.9, 494.7, 989.4, 989.4, 1978.9, 3350, 6, 1,
     "NVIDIA H100 data sheet: SXM"},
    {"H100 PCIe", "Hopper", 26, 51.2, 378, 756, 756, 1513, 2039, 6, 1,
     "NVIDIA H100 data sheet: PCIe"},
    {"H100 NVL", "Hopper", 30, 60, 417.5, 835, 835, 1670.5, 3938, 0, 0,
     "NVIDIA H100 data sheet: NVL"},
    {"H20", "Hopper", 1, 44, 74, 148, 148, 296, 4000, 0, 0, "NVIDIA H20 data sheet"},
    {"H200", "Hopper", 34, 66.9, 494.7, 989.4, 989.4, 1978.9, 4800, 6, 1,
     "NVIDIA H200 data sheet: SXM"},
    {"H200 NVL", "Hopper", 30, 60, 417.5, 835, 835, 1670.5, 4800, 0, 0,
     "NVIDIA H200 data sheet: NVL"},
    {"GH200", "Hopper", 34, 66.9, 494.7, 989.4, 989.4, 1978.9, 4000, 6, 1,
     "NVIDIA GH200 data sheet: 96 GB"},
    {"B200", "Blackwell", 37, 75, 1100, 2250, 2250, 4500, 8000, 6, 1,
     "NVIDIA DGX B200 data sheet: dense rates of one GPU"},
    {"GB200", "Blackwell", 40, 80, 1250, 2500, 2500, 5000, 8000, 0, 0,
     "NVIDIA GB200 data sheet: dense rates of one GPU"},
    {"RTX 5090", "GeForce", 1.6, 104.8, 104.8, 209.5, 209.5, 419, 1792, 0, 0,
     "NVIDIA RTX Blackwell architecture whitepaper: f16 with f32 accumulation"},
    {"RTX PRO 6000", "Blackwell RTX", 1.97, 126, 252, 503.8, 503.8, 1007.6, 1792, 0, 0,
     "NVIDIA RTX Blackwell PRO architecture whitepaper"},
    {"MI100", "CDNA", 11.5, 46.1, 0, 184.6, 92.3, 0, 1229, 0, 0,
     "AMD Instinct MI100 data sheet: matrix rates"},
    {"MI210", "CDNA", 45.3, 45.3, 0, 181, 181, 0, 1638, 0, 0,
     "AMD Instinct MI210 data sheet: matrix rates"},
    {"MI250", "CDNA", 45.3, 45.3, 0, 181, 181, 0, 1638, 0, 0,
     "AMD Instinct MI250 data sheet: one of its two GPUs"},
    {"MI250X", "CDNA", 47.9, 47.9, 0, 191.5, 191.5, 0, 1638, 0, 0,
     "AMD Instinct MI250X data sheet: one of its two GPUs"},
    {"MI300A", "CDNA", 122.6, 122.6, 490.3, 980.6, 980.6, 1961.2, 5300, 0, 0,
     "AMD Instinct MI300A data sheet"},
    {"MI300X", "CDNA", 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 5300, 0, 0,
     "AMD Instinct MI300X data sheet"},
    {"MI325X", "CDNA", 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 6000, 0, 0,
     "AMD Instinct MI325X data sheet"},
};

constexpr Efficiency kEfficiencies[] = {
    {"any", 0.7679, 0.7155, 0.891, 0.5429, 0.4, 0.3417, 0.7277},
    {"Ada", 0.7679, 0.6852, 0.891, 0.5517, 0.4, 0.3417, 0.7507},
    {"Ampere", 0.7679, 0.7213, 0.891, 0.5406, 0.4, 0.3417, 0.6789},
    {"Ampere RTX", 0.7679, 0.676, 0.891, 0.5671, 0.4, 0.3417, 0.7823},
    {"Blackwell", 0.7679, 0.71, 0.891, 0.5286, 0.4, 0.3417, 0.5499},
    {"GeForce", 0.7679, 0.8305, 0.891, 0.6995, 0.4, 0.3417, 0.9987},
    {"Hopper", 0.7679, 0.7294, 0.891, 0.5196, 0.4, 0.3417, 0.6859},
    {"Kepler", 0.7682, 0.7155, 0.6606, 0.5429, 0.4, 0.3417, 0.6548},
    {"Pascal", 0.8005, 0.7155, 1.047, 0.5429, 0.4, 0.3417, 0.617},
    {"Turing", 0.7596, 0.671, 0.8913, 0.5177, 0.4, 0.3417, 0.6522},
    {"Turing GeForce", 0.7456, 0.7565, 1.092, 0.5614, 0.4, 0.3417, 0.8},
    {"Volta", 0.785, 0.7411, 1.042, 0.4819, 0.4, 0.3417, 0.7733},
    {"CDNA", 0.7679, 0.5008, 0.891, 0.38, 0.4, 0.2392, 0.7277},
};

constexpr KernelSeconds kKernelSeconds = {4e-06, 8.403e-06, 8.014e-06, 3.074e-06};
constexpr SizeSeconds kSizeSeconds = {4.436e-05, 4.018e-05};
constexpr double kSizeLoss = 4;
constexpr double kHostOpSeconds = 2.009e-05;
constexpr double kNchwPasses = 1.501;
constexpr double kRooflinePower = 3;
constexpr double kOverlapPower = 2;
constexpr CompiledShare kCompiled = {0.3492, 0.3008};
constexpr OpInterval kKnownChip = {0.6976, 1.71, 451};
constexpr OpInterval kNewChip = {0.7359, 1.711, 451};
constexpr OpInterval kHostBound = {0.6903, 2.166, 58};

}  // namespace howmany::reports
