// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/torch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "reports/comm/run.h"

namespace howmany::reports {
namespace {

constexpr double kAlike = 1.1;  // ratio of the times

// Returns the first all_reduce operation of the most ranks.
const OperationResults* main_all_reduce(const std::vector<OperationResults>& operations) {
  const OperationResults* main = nullptr;
  for (const OperationResults& c : operations)
    if (c.op == "all_reduce" && (!main || c.devices > main->devices)) main = &c;
  return main;
}

const Curve* sweep_of(const OperationResults& operation, std::string_view backend) {
  const auto found = std::ranges::find(operation.sweep, backend, &NamedCurve::backend);
  return found == operation.sweep.end() ? nullptr : &found->curve;
}

double off_by(double ratio) { return std::abs(std::log(ratio)); }

TorchGap gap_between(const Curve& ours, const Curve& torch) {
  TorchGap gap;
  double sum = 0;
  for (const CurvePoint& p : torch) {
    const CurvePoint* const own = at_size(ours, p.bytes);
    if (!own) continue;
    const double ratio = p.seconds / own->seconds;
    sum += std::log(ratio);
    if (gap.sizes++ == 0 || off_by(ratio) > off_by(gap.largest))
      gap.largest = ratio, gap.bytes = p.bytes;
  }
  if (gap.sizes > 0) gap.ratio = std::exp(sum / gap.sizes);
  return gap;
}

}  // namespace

std::vector<TorchGap> torch_gaps(const std::vector<OperationResults>& operations) {
  std::vector<TorchGap> gaps;
  const OperationResults* const operation = main_all_reduce(operations);
  if (!operation) return gaps;
  for (const NamedCurve& named : operation->sweep) {
    if (!is_torch_backend(named.backend)) continue;
    const std::string library = named.backend.substr(kTorchPrefix.size());
    const Curve* const ours = sweep_of(*operation, library);
    if (!ours) continue;
    TorchGap gap = gap_between(*ours, named.curve);
    gap.backend = library;
    gap.torch = named.backend;
    if (gap.sizes > 0) gaps.push_back(std::move(gap));
  }
  return gaps;
}

bool differs(const TorchGap& gap) { return off_by(gap.ratio) > std::log(kAlike); }

std::string words_of(const TorchGap& gap) {
  return fmt::format(
      "{} takes {}x as long as {} for an all_reduce (geometric mean of {} size{}); the largest "
      "difference is {}x at {}.",
      gap.torch, format_ratio(gap.ratio), gap.backend, gap.sizes, gap.sizes == 1 ? "" : "s",
      format_ratio(gap.largest), format_bytes(gap.bytes));
}

}  // namespace howmany::reports
