# SPDX-License-Identifier: Apache-2.0
"""Writes reports/predict/op_rates.h from the values of fit.py."""

HEAD = """// SPDX-License-Identifier: Apache-2.0
// Rates that turn the operations of a training step into seconds, made by scripts/studies/op-rates
// on {date}. The peaks of chips are those of data sheets; the rest was fitted to {rows} published
// training rates of {sources} sources.
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
//   else kNewChip. They hold 90 % of the ratios of the measured step to the predicted one, in sources
//   (kNewChip: sources and chips) that the fit had left out.
#pragma once

#include <string_view>

namespace howmany::reports {{
"""

SHAPE = """
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

struct KernelSeconds {  // of each operation, whatever its size
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
"""


def number(value):
    return f"{value:.4g}"


def text(value):
    return f'"{value}"'


def line(*values):
    return f"    {{{', '.join(values)}}},"


CHIP_NUMBERS = ("f64", "f32", "tf32", "f16", "bf16", "f8", "gb_per_s")
KINDS = (
    "product_plain",
    "product_tensor",
    "convolution_plain",
    "convolution_tensor",
    "attention_plain",
    "attention_tensor",
    "memory",
)


def header(date, fit, chips, counts):
    """Returns the text of the header. `counts` is {chip: (rows, sources)}. `fit` has
    efficiencies {generation: {kind: value}}, kernel_s and size_s {work: s}, compiled {memory, host},
    known, new and host_bound (low, high, rows),
    and the numbers size_loss, nchw_passes, host_op_s, roofline_power, overlap_power, rows, sources."""
    lines = [HEAD.format(date=date, rows=fit["rows"], sources=fit["sources"]), SHAPE.strip(), ""]
    lines.append("constexpr ChipPeak kChipPeaks[] = {")
    for chip in chips:
        rows, sources = counts.get(chip["name"], (0, 0))
        lines.append(
            line(
                text(chip["name"]),
                text(chip["generation"]),
                *(chip[key] for key in CHIP_NUMBERS),
                str(rows),
                str(sources),
                text(chip["source"]),
            )
        )
    lines += ["};", "", "constexpr Efficiency kEfficiencies[] = {"]
    for generation, values in fit["efficiencies"].items():
        lines.append(line(text(generation), *(number(values[kind]) for kind in KINDS)))
    kernel, compiled = fit["kernel_s"], fit["compiled"]
    kernels = ", ".join(number(kernel[work]) for work in ("product", "convolution", "attention", "memory"))
    lines += [
        "};",
        "",
        f"constexpr KernelSeconds kKernelSeconds = {{{kernels}}};",
        f"constexpr SizeSeconds kSizeSeconds = {{{', '.join(number(one) for one in fit['size_s'].values())}}};",
        f"constexpr double kSizeLoss = {number(fit['size_loss'])};",
        f"constexpr double kHostOpSeconds = {number(fit['host_op_s'])};",
        f"constexpr double kNchwPasses = {number(fit['nchw_passes'])};",
        f"constexpr double kRooflinePower = {number(fit['roofline_power'])};",
        f"constexpr double kOverlapPower = {number(fit['overlap_power'])};",
        f"constexpr CompiledShare kCompiled = {{{number(compiled['memory'])}, {number(compiled['host'])}}};",
    ]
    for name, (low, high, rows) in (
        ("kKnownChip", fit["known"]),
        ("kNewChip", fit["new"]),
        ("kHostBound", fit["host_bound"]),
    ):
        lines.append(f"constexpr OpInterval {name} = {{{number(low)}, {number(high)}, {rows}}};")
    lines += ["", "}  // namespace howmany::reports", ""]
    return "\n".join(lines)
