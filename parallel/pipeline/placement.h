// SPDX-License-Identifier: Apache-2.0
// Assigns the units of a model (core/nn/units.h) to devices: by a text, "0-3:cpu:0,4-9:cpu:1", or
// by measured times, so that the slowest part is as fast as possible. Thread-safe; all but
// measure_units() are pure functions.
//
//   const UnitCosts cpu = measure_units(all, {.rows = 8, .sample = model.sample});
//   const auto bounds = balance({cpu, cpu});  // {0, 5, 10}: units 0-4 and 5-9
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/nn/model.h"
#include "core/nn/units.h"

namespace howmany {

struct PlacedPart {
  size_t begin = 0, end = 0;  // units
  Device device;
};

// Parses "first-last:device" or "unit:device", joined by ',' or '+', in order, with every unit
// once. "4-:cpu:1" extends to the last unit. Throws std::invalid_argument with advice if the text
// is invalid.
std::vector<PlacedPart> parse_placement(std::string_view text, size_t units);

using UnitCosts = std::vector<double>;  // per unit, on one device

// Returns the bounds of non-empty contiguous parts that minimize the largest cost of a part.
// parts[i][u] is the cost of unit u in part i. Exact, by dynamic programming in
// O(units^2 * parts) time. Throws std::invalid_argument if there are more parts than units.
std::vector<size_t> balance(const std::vector<UnitCosts>& parts);

// FLOP that a core of a CPU computes in f32 while it moves a byte.
constexpr double kCpuFlopPerByte = 7;

struct MeasureUnits {
  int64_t rows = 1;
  Shape sample = {};  // of the model's input, without rows
  Dtype input = Dtype::f32, dtype = Dtype::f32;
  Device device = {};
  int repeats = 3;  // the minimum is used
  // FLOP that the device behind a meta device computes while it moves a byte of its memory.
  double flop_per_byte = kCpuFlopPerByte;
};
// Returns the seconds of forward and backward of each unit, with zeros as input, measured by device
// events. The calling thread submits the work. On a meta device they are computed from the FLOP and
// the bytes of the weights, the input and the output.
UnitCosts measure_units(std::span<const Unit> units, const MeasureUnits& how);

}  // namespace howmany
