// SPDX-License-Identifier: Apache-2.0
#include "parallel/sync/straggler.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/statistics.h"

namespace howmany {
Straggler straggler_of(const std::vector<double>& own_seconds) {
  const auto slowest = std::ranges::max_element(own_seconds);
  HM_REQUIRE(slowest != own_seconds.end(), "[straggler] no ranks");
  const auto rank = slowest - own_seconds.begin();
  std::vector<double> others = own_seconds;
  others.erase(others.begin() + rank);
  return {static_cast<int>(rank), others.empty() ? 0 : *slowest - median(others)};
}

Straggler find_straggler(Comm& comm, const std::vector<double>& own_seconds) {
  Tensor all = Tensor::empty({comm.size()}, Dtype::f64);
  comm.all_gather(Tensor::full({1}, median(own_seconds), Dtype::f64), all);
  const auto values = all.values<double>();
  return straggler_of({values.begin(), values.end()});
}

}  // namespace howmany
