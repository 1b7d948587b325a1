// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/limit.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/workers/model.h"

namespace howmany::reports {
namespace {

constexpr double kBinding = 1.2;  // a bound within this factor of the best rate is the limit
constexpr double kIdle = 1.5;     // if the cores' bound is this factor away, cores wait

}  // namespace

bool RateLimit::is_cores() const {
  return samples_per_s_per_device() * kIdle >= cores_bound(facts_.probes, facts_.asked);
}

double RateLimit::hidden_s() const { return is_cores() ? facts_.probes.waiting_s : 0; }

std::string RateLimit::name() const {
  const LoaderProbes& p = facts_.probes;
  const double each = samples_per_s_per_device();
  if (each * kBinding >= transfer_bound(p)) return "the thread that takes batches";
  if (each * kBinding >= storage_bound(p.warm_files_per_s, facts_.asked.devices))
    return "reading files, even from memory";
  if (p.waiting_s > 0 && !is_cores()) return "waiting for files";
  return name_of_cores();
}

std::string RateLimit::name_of_cores() const {
  const LoaderProbes& p = facts_.probes;
  const char* stage = "making samples";
  const double read_s = p.read_s - hidden_s();
  const double most = std::max({read_s, p.decode_s, p.transform_s, p.rest_s});
  if (p.decode_s > 0) {
    stage = most == p.decode_s      ? "decoding"
            : most == p.transform_s ? "resizing and normalising"
            : most == read_s        ? "reading files"
                                    : "collating";
  }
  return fmt::format("{} on {:.2g} core{}", stage, p.cores, p.cores < 1.05 ? "" : "s");
}

}  // namespace howmany::reports
