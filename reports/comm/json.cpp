// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/json.h"

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "reports/results/cell.h"

namespace howmany::reports {
namespace {

nlohmann::ordered_json fit_json(const OperationResults& operation, const std::string& backend,
                                const AlphaBeta& fit) {
  return {{"op", operation.op},
          {"backend", backend},
          {"dtype", operation.dtype},
          {"devices", operation.devices},
          {"latency_s", fit.latency},
          {metric::kBytesPerS, finite_or_null(fit.bytes_per_s())},
          {"error", finite_or_null(fit.error.value_or(kNaN))},
          {"sizes", fit.sizes}};
}

nlohmann::ordered_json crossing_json(const OperationResults& operation, const Crossing& c) {
  return {{"op", operation.op},
          {"dtype", operation.dtype},
          {"devices", operation.devices},
          {"from_bytes", c.from},
          {"to_bytes", c.to},
          {"below", c.below},
          {"above", c.above},
          {"bytes", finite_or_null(c.crosses() ? c.bytes : kNaN)},
          {"low", finite_or_null(c.interval ? c.interval->low : kNaN)},
          {"high", finite_or_null(c.interval ? c.interval->high : kNaN)},
          {"certain", c.certain}};
}

nlohmann::ordered_json model_json(const ModelTime& m) {
  nlohmann::ordered_json seconds = nlohmann::ordered_json::object();
  for (const auto& [backend, time] : m.times) seconds[backend] = time.seconds;
  return {{"model", m.model}, {"bucket_bytes", m.bytes}, {"seconds", seconds}};
}

}  // namespace

nlohmann::ordered_json to_json(const BackendAdvice& advice,
                               const std::vector<Measurement>& measurements) {
  using Json = nlohmann::ordered_json;
  Json table = Json::array(), fits = Json::array(), crossings = Json::array(),
       models = Json::array();
  for (const Measurement& m : measurements)
    if (is_timed(m))
      table.push_back(
          {{"op", op_of(m)},
           {"backend", backend_of(m)},
           {"dtype", parameter_of(m, parameter::kDtype)},
           {"devices", count_of(m, parameter::kDevices)},
           {"bytes", number_of(m, parameter::kBytes)},
           {"isolated_s", value_of(m, metric::kMedianS)},
           {metric::kPipelinedS, finite_or_null(value_of(m, metric::kPipelinedS))},
           {metric::kAlgbwBytesPerS, finite_or_null(value_of(m, metric::kAlgbwBytesPerS))},
           {metric::kBusbwBytesPerS, finite_or_null(value_of(m, metric::kBusbwBytesPerS))}});
  for (const OperationResults& c : advice.operations) {
    for (const auto& [backend, fit] : c.fits) fits.push_back(fit_json(c, backend, fit));
    if (c.crossing) crossings.push_back(crossing_json(c, *c.crossing));
  }
  for (const ModelTime& m : advice.models) models.push_back(model_json(m));
  return {{"recommended", advice.recommended ? Json(*advice.recommended) : Json(nullptr)},
          {"reason", advice.reason},
          {"because", advice.because},
          {"certain", advice.certain},
          {"disturbed", advice.disturbed},
          {"notes", advice.notes},
          {"ceilings",
           {{"copy_one_thread_bytes_per_s", finite_or_null(advice.ceilings.copy_one_thread)},
            {"copy_all_threads_bytes_per_s", finite_or_null(advice.ceilings.copy_all_threads)},
            {"loopback_tcp_bytes_per_s", finite_or_null(advice.ceilings.loopback_tcp)}}},
          {"crossings", crossings},
          {"models", models},
          {"fits", fits},
          {"table", table}};
}

}  // namespace howmany::reports
