// SPDX-License-Identifier: Apache-2.0
// Compares interpolation between measured sizes with the cells of real runs in
// tests/data/backend_tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/results/curve.h"

namespace howmany::reports {
namespace {

using Curves = std::map<std::string, Curve>;  // by operation and backend

Curves curves_of(const nlohmann::json& table, int run) {
  Curves curves;
  for (const auto& cell : table["cells"])
    if (const auto& seconds = cell[run == 1 ? 3 : 7]; seconds.is_number())
      curves[cell[0].get<std::string>() + cell[1].get<std::string>()].push_back(
          {cell[2].get<double>(), seconds.get<double>()});
  for (auto& [name, curve] : curves) std::ranges::sort(curve, {}, &CurvePoint::bytes);
  return curves;
}

// Leaves out every inner size, one at a time. Returns the median relative error over all curves.
double left_out_error(const Curves& curves) {
  std::vector<double> errors;
  for (const auto& [name, curve] : curves)
    for (size_t i = 1; i + 1 < curve.size(); ++i) {
      const Curve neighbours = {curve[i - 1], curve[i + 1]};
      const double seconds = seconds_at(neighbours, curve[i].bytes);
      errors.push_back(std::abs(seconds / curve[i].seconds - 1));
    }
  return median(errors);
}

TEST(RecordedTables, AreInterpolatedWithinATenthIfTheHostWasIdle) {
  const char* const source = std::getenv("HOWMANY_SOURCE");
  if (source == nullptr) GTEST_SKIP() << "HOWMANY_SOURCE does not name the source folder";
  const std::string path = std::string(source) + "/tests/data/backend_tables/idle.json";
  const nlohmann::json table = parse_json(read_text(path), path);
  for (const int run : {1, 2}) EXPECT_LE(left_out_error(curves_of(table, run)), 0.1) << run;
}

}  // namespace
}  // namespace howmany::reports
