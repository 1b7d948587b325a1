// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/json.h"

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "reports/comm/torch.h"
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

nlohmann::ordered_json gap_json(const TorchGap& gap) {
  return {{"backend", gap.torch},       {"against", gap.backend}, {"op", "all_reduce"},
          {"ratio", gap.ratio},         {"sizes", gap.sizes},     {"largest_ratio", gap.largest},
          {"largest_bytes", gap.bytes}, {"differs", differs(gap)}};
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
  Json table = Json::array(), fits = Json::array(), best = Json::array(), models = Json::array(),
       verdicts = Json::array(), references = Json::array(), torch = Json::array();
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
    Json ranges = Json::array();
    for (const BestRange& r : c.best)
      ranges.push_back({{"backend", r.backend}, {"from_bytes", r.from}, {"certain", r.certain}});
    best.push_back({{"op", c.op}, {"dtype", c.dtype}, {"devices", c.devices}, {"ranges", ranges}});
  }
  for (const ModelTime& m : advice.models) models.push_back(model_json(m));
  for (const PathVerdict& v : advice.verdicts)
    verdicts.push_back({{"backend", v.backend},
                        {"op", v.op},
                        {"bytes", v.bytes},
                        {metric::kBusbwBytesPerS, v.bytes_per_s},
                        {"ceiling", v.path},
                        {"ceiling_bytes_per_s", v.ceiling},
                        {"ratio", v.ratio()}});
  for (const ReferenceLine& r : advice.references)
    references.push_back({{"op", r.op},
                          {"bytes", r.bytes},
                          {metric::kBusbwBytesPerS, r.bytes_per_s},
                          {"reference_bytes_per_s", r.reference},
                          {"verdict", r.verdict},
                          {"system", r.system},
                          {"source", r.source}});
  for (const TorchGap& gap : advice.torch) torch.push_back(gap_json(gap));
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
          {"verdicts", verdicts},
          {"references", references},
          {"torch", torch},
          {"best", best},
          {"models", models},
          {"fits", fits},
          {"table", table}};
}

}  // namespace howmany::reports
