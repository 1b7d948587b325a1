// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/schema/metrics.h"
#include "core/base/statistics.h"
#include "reports/results/record.h"
#include "reports/workers/rows.h"

namespace howmany::reports {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr double kSharpness = 5;  // of the corner between two bounds; measured curves are smooth
constexpr double kMostCores = 4096;
constexpr int kReplayed = 2000;      // batches
constexpr double kStillGains = 1.5;  // required gain from twice the reading threads
constexpr double kLetsGo = 0.5;      // per sample
constexpr double kWaits = 0.2;       // of a sample's time

const BenchRow* find_row(const BenchFile& file, const std::string& start) {
  const auto it = std::find_if(file.rows.begin(), file.rows.end(),
                               [&](const BenchRow& row) { return row.name.starts_with(start); });
  return it == file.rows.end() ? nullptr : &*it;
}

const BenchRow& need_row(const BenchFile& file, const std::string& start) {
  const BenchRow* row = find_row(file, start);
  if (row == nullptr) throw InputError(fmt::format("loader_bench did not measure {}", start));
  if (!row->error.empty()) throw InputError(fmt::format("{}: {}", start, row->error));
  return *row;
}

// Returns 4 for "loader/probe/read/threads:4/cache:cold".
int threads_of(const std::string& name) {
  const size_t at = name.find("threads:");
  return at == std::string::npos ? 0 : std::atoi(name.c_str() + at + 8);
}

// A worker process takes longer per sample than the caller.
void add_worker(const BenchFile& file, LoaderProbes& probes) {
  const BenchRow* row = find_row(file, "loader/probe/worker/");
  const double more = row == nullptr ? 0 : counter(*row, metric::kSampleS) - probes.caller_s;
  if (!(more > 0)) return;
  probes.sample_s += more;
  probes.rest_s += more;
}

void add_reading(const BenchFile& file, LoaderProbes& probes) {
  for (const BenchRow& row : file.rows) {
    if (!row.name.starts_with("loader/probe/read/")) continue;
    const bool cold = row.name.find("cache:cold") != std::string::npos;
    if (cold && !row.error.empty()) probes.cold_error = row.error;
    if (!row.error.empty()) continue;
    (cold ? probes.cold_files_per_s : probes.warm_files_per_s)[threads_of(row.name)] =
        counter(row, metric::kFilesPerS);
  }
}

// Returns a smooth minimum.
double soft_least(const std::vector<double>& bounds) {
  double sum = 0;
  for (const double bound : bounds)
    if (std::isfinite(bound)) sum += std::pow(std::max(bound, 1e-9), -kSharpness);
  return sum > 0 ? std::pow(sum, -1 / kSharpness) : kNone;
}

}  // namespace

LoaderProbes probes_from(const BenchFile& file, const std::vector<SampleLine>& samples) {
  const BenchRow& solo = need_row(file, "loader/probe/solo/");
  LoaderProbes probes;
  probes.caller_s = probes.sample_s = counter(solo, metric::kSampleS);
  if (!(probes.sample_s > 0)) throw InputError("loader/probe/solo: no sample_s");
  probes.read_s = counter(solo, metric::kReadS);
  probes.decode_s = counter(solo, metric::kDecodeS);
  probes.transform_s = counter(solo, metric::kTransformS);
  probes.rest_s = counter(solo, metric::kRestS);
  // A shared or throttled core looks like waiting too. Only reading waits for storage and releases
  // the core.
  const double waiting = probes.sample_s - counter(solo, metric::kOnCoreS, probes.sample_s);
  const bool lets_go = counter(solo, metric::kLetsGoOfCore, 1) > kLetsGo;
  if (lets_go && waiting > kWaits * probes.sample_s)
    probes.waiting_s = std::min(waiting, probes.read_s);
  probes.file_bytes = counter(solo, metric::kFileBytes);
  probes.pixels = counter(solo, metric::kPixels);
  probes.sample_bytes = counter(solo, metric::kSampleBytes);
  add_worker(file, probes);
  probes.handover_s = counter(need_row(file, "loader/probe/handover/"), metric::kSampleS);
  if (const BenchRow* row = find_row(file, "loader/probe/collate/"))
    probes.collate_s = counter(*row, metric::kSampleS);
  if (const BenchRow* row = find_row(file, "loader/probe/cores/"))
    probes.cores = std::clamp(counter(*row, "cores", 1), 0.05, kMostCores);
  add_reading(file, probes);
  for (const SampleLine& line : samples)
    if (line.name.starts_with("loader/probe/solo/")) probes.batch_s = line.seconds;
  if (probes.batch_s.empty()) throw InputError("loader/probe/solo: no samples");
  for (double& seconds : probes.batch_s) seconds *= probes.sample_s / probes.caller_s;
  return probes;
}

double core_s(const LoaderProbes& probes) {
  return std::max(probes.sample_s - probes.waiting_s, 1e-9);
}

double cores_bound(const LoaderProbes& probes, const LoaderDemand& asked) {
  const double own = asked.demand > 0 ? 1 : 0;  // the thread that trains
  const double each = probes.cores / asked.devices;
  return std::max(each - own, each / 2) / core_s(probes);
}

double transfer_bound(const LoaderProbes& probes) {
  return probes.handover_s > 0 ? 1 / probes.handover_s : kNone;
}

double storage_bound(const std::map<int, double>& files_per_s, int devices) {
  double most = 0;
  for (const auto& [threads, rate] : files_per_s) {
    const auto half = files_per_s.find(threads / 2);
    const bool gains = half != files_per_s.end() && rate > kStillGains * half->second;
    if (gains && threads == files_per_s.rbegin()->first) return kNone;
    most = std::max(most, rate);
  }
  return most > 0 ? most / devices : kNone;
}

double predicted_rate(const LoaderProbes& probes, const LoaderDemand& asked, int workers) {
  if (workers == 0) return 1 / probes.caller_s;
  return soft_least({workers / probes.sample_s, cores_bound(probes, asked), transfer_bound(probes),
                     storage_bound(probes.warm_files_per_s, asked.devices)});
}

double replayed_stall(const std::vector<double>& batch_s, double step, int workers, int prefetch) {
  if (batch_s.empty() || !(step > 0)) return 0;
  const auto n = static_cast<size_t>(kReplayed);
  const size_t w = static_cast<size_t>(std::max(1, workers));
  const size_t window = w * static_cast<size_t>(std::max(1, prefetch));
  std::vector<double> finished(n), taken(n);
  double asked = 0, waited = 0;
  uint64_t draw = 1;
  for (size_t i = 0; i < n; ++i) {
    draw = draw * 6364136223846793005ULL + 1442695040888963407ULL;
    const double takes = batch_s[(draw >> 33) % batch_s.size()];
    if (workers == 0) {
      finished[i] = asked + takes;
    } else {
      const double issued = i < window ? 0 : taken[i - window];
      finished[i] = std::max(issued, i < w ? 0 : finished[i - w]) + takes;
    }
    taken[i] = std::max(asked, finished[i]);
    if (i >= window) waited += taken[i] - asked;
    asked = taken[i] + step;
  }
  const double total = asked - (window < n ? taken[window - 1] + step : 0);
  return total > 0 ? std::clamp(waited / total, 0.0, 1.0) : 0;
}

double predicted_stall(const LoaderProbes& probes, const LoaderDemand& asked, int workers) {
  if (!(asked.demand > 0)) return 0;
  // seconds per sample of one of w workers that slow each other down
  const double each = workers / predicted_rate(probes, asked, workers);
  const double slower =
      workers == 0 ? probes.caller_s / probes.sample_s : std::max(1.0, each / probes.sample_s);
  std::vector<double> batch_s = probes.batch_s;
  for (double& seconds : batch_s) seconds *= slower;
  return replayed_stall(batch_s, static_cast<double>(asked.batch) / asked.demand, workers,
                        asked.prefetch);
}

double coefficient_of_batches(const LoaderProbes& probes) {
  return probes.batch_s.size() < 2 ? 0 : coefficient_of_variation(probes.batch_s);
}

}  // namespace howmany::reports
