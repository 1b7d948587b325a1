// Fits the backend tables that real runs left in tests/data/backend_tables. docs/RESULTS.md quotes
// the printed errors at held-out sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/backend_curve.h"
#include "reports/files.h"
#include "reports/json.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;

// Returns the median error at held-out sizes over the operations and backends of one run.
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

TEST(RecordedTables, FitsHeldOutSizesWithinATenthOnAnIdleHost) {
  const char* const source = std::getenv("HOWMANY_SOURCE");
  if (source == nullptr) GTEST_SKIP() << "HOWMANY_SOURCE is not set";
  const fs::path tables = fs::path(source) / "tests/data/backend_tables";
  for (const std::string name : {"idle", "noisy"}) {
    const nlohmann::json table = parse_json(read_text(tables / (name + ".json")), name);
    for (const int run : {1, 2}) {
      const double error = held_back(table, run);
      std::cout << name << ", run " << run << ": " << error << "\n";
      EXPECT_LE(error, name == "idle" ? 0.1 : 1) << name << ", run " << run;
    }
  }
}

}  // namespace
}  // namespace howmany
