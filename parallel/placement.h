// Which units of a model (core/nn/units.h) stand where: as told, "0-3:cpu:0,4-9:cpu:1", or in
// neighbouring parts whose slowest is as fast as it can be, by measured times. Pure but for
// measure_units; any thread.
//
//   const UnitCosts cpu = measure_units(all, {.rows = 8, .sample = model.sample});
//   const auto bounds = balance({cpu, cpu});  // {0, 5, 10}: part i is the units [bounds[i],
//   ...[i+1])
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

// "first-last:device" or "unit:device" joined by ',' or '+', in order, every unit once; "4-:cpu:1"
// goes to the last. Throws std::invalid_argument that says what to write.
std::vector<PlacedPart> parse_placement(std::string_view text, size_t units);

using UnitCosts = std::vector<double>;  // of each unit, on one device

// Bounds of non-empty neighbouring parts such that the largest sum of costs is least, where `parts`
// holds what all units would cost in each part; the exact optimum, in units^2 parts time. Throws
// std::invalid_argument for more parts than units.
std::vector<size_t> balance(const std::vector<UnitCosts>& parts);

struct MeasureUnits {
  int64_t rows = 1;
  Shape sample = {};  // the model's, without rows
  Dtype input = Dtype::f32, dtype = Dtype::f32;
  Device device = {};
  int repeats = 3;  // the fastest counts
};
// Seconds of forward and backward of each unit on zeros, by the device's own clock, asked for by
// the calling thread.
UnitCosts measure_units(std::span<const Unit> units, const MeasureUnits& how);

}  // namespace howmany
