// The fit against the cells that real runs left in reports/runs: what the figures there say of
// held-back sizes comes from here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/comm/curve.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

// Of one run of a table: the median over operations and backends.
double held_back(const nlohmann::json& table, int run) {
  std::map<std::string, Curve> curves;
  for (const auto& cell : table["cells"])
    if (const auto& seconds = cell[run == 1 ? 3 : 7]; seconds.is_number())
      curves[cell[0].get<std::string>() + cell[1].get<std::string>()].push_back(
          {cell[2].get<double>(), seconds.get<double>()});
  std::vector<double> errors;
  for (auto& [name, curve] : curves) {
    std::ranges::sort(curve, {}, &CurvePoint::bytes);
    if (const auto error = fit_alpha_beta(curve).held_back_error) errors.push_back(*error);
  }
  return median(errors);
}

TEST(RecordedTables, AreFittedWithinATenthAtSizesHeldBackWhereTheHostWasCalm) {
  const char* const source = std::getenv("HOWMANY_SOURCE");
  if (source == nullptr) GTEST_SKIP() << "HOWMANY_SOURCE does not tell where the sources are";
  const fs::path runs = fs::path(source) / "reports/runs/2026-11-21-two-cores";
  for (const auto& file : fs::directory_iterator(runs)) {
    const std::string name = file.path().stem().string();
    if (!name.starts_with("two-tables")) continue;
    const nlohmann::json table = parse_json(read_text(file.path()), name);
    for (const int run : {1, 2}) {
      const double error = held_back(table, run);
      std::cout << name << ", run " << run << ": " << error << "\n";
      EXPECT_LE(error, name == "two-tables-calm" ? 0.1 : 1) << name << ", run " << run;
    }
  }
}

}  // namespace
}  // namespace howmany::reports
