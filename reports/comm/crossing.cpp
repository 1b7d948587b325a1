// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/crossing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text/bytes.h"

namespace howmany::reports {
namespace {

using Row = std::vector<CurvePoint>;  // the points of one size, by backend

std::vector<Row> common_rows(const std::vector<NamedCurve>& curves) {
  std::vector<Row> rows;
  if (curves.empty()) return rows;
  for (const CurvePoint& p : curves[0].curve) {
    Row row;
    for (const NamedCurve& named : curves)
      if (const CurvePoint* point = at_size(named.curve, p.bytes)) row.push_back(*point);
    if (row.size() == curves.size()) rows.push_back(std::move(row));
  }
  return rows;
}

size_t fastest(const Row& row) {
  return static_cast<size_t>(std::ranges::min_element(row, {}, &CurvePoint::seconds) - row.begin());
}

bool apart_from_all(const Row& row, size_t best) {
  for (size_t i = 0; i < row.size(); ++i)
    if (i != best && !apart(row[best], row[i])) return false;
  return true;
}

// Sets where backend `a`, the fastest at the first row, becomes slower than `b`, the fastest at the
// last row.
void find_crossing(const std::vector<Row>& rows, size_t a, size_t b, Crossing& crossing) {
  const Row& last = rows.back();
  auto low = std::find_if(rows.rbegin(), rows.rend(), [&](const Row& row) {
               return apart(row[a], row[b]);
             }).base();
  crossing.certain = low != rows.begin() && apart(last[b], last[a]);
  if (!crossing.certain) low = rows.begin() + 1;
  auto after = std::find_if(low, rows.end() - 1,
                            [&](const Row& row) { return row[a].seconds > row[b].seconds; });
  const Row &above = *after, &below = *(after - 1);
  const double first = std::log(below[a].seconds / below[b].seconds);
  const double second = std::log(above[a].seconds / above[b].seconds);
  const double share = first == second ? 0.5 : first / (first - second);
  crossing.bytes = below[a].bytes * std::pow(above[a].bytes / below[a].bytes, share);
  if (!crossing.certain) return;
  while (!apart((*after)[b], (*after)[a])) ++after;
  crossing.interval = Interval{(low - 1)->front().bytes, after->front().bytes};
}

}  // namespace

std::optional<Crossing> crossing_of(const std::vector<NamedCurve>& curves) {
  const std::vector<Row> rows = common_rows(curves);
  if (rows.empty()) return {};
  const size_t a = fastest(rows.front()), b = fastest(rows.back());
  Crossing crossing{.below = curves[a].backend,
                    .above = curves[b].backend,
                    .from = rows.front()[0].bytes,
                    .to = rows.back()[0].bytes};
  if (a != b)
    find_crossing(rows, a, b, crossing);
  else
    crossing.certain = apart_from_all(rows.front(), a) && apart_from_all(rows.back(), a);
  return crossing;
}

std::string in_words(const Crossing& c) {
  if (!c.crosses())
    return fmt::format("{} at {} and at {}{}", c.below, format_bytes(c.from), format_bytes(c.to),
                       c.certain ? "" : ", uncertain");
  return fmt::format("{} below {} ({}), {} above", c.below, format_bytes(c.bytes),
                     c.interval ? fmt::format("{} to {}", format_bytes(c.interval->low),
                                              format_bytes(c.interval->high))
                                : "uncertain",
                     c.above);
}

}  // namespace howmany::reports
