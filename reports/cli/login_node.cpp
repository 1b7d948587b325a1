// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/login_node.h"

#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/base/process.h"

namespace howmany::reports {
namespace {

constexpr double kSinfoSeconds = 5;

// True if sinfo lists partitions. A machine may have Slurm's programs without a cluster.
bool has_cluster() {
  const std::string sinfo = find_in_path("sinfo");
  if (sinfo.empty()) return false;
  const ProcessResult ended =
      run_command({.argv = {sinfo, "--noheader"}, .timeout_seconds = kSinfoSeconds});
  return ended.ok() && !ended.out.empty();
}

}  // namespace

void refuse_login_node() {
  if (std::getenv("SLURM_JOB_ID") != nullptr || !has_cluster()) return;
  throw InputError(
      "this looks like a login node: a Slurm cluster is here, and this is no job. Measure within a "
      "job, "
      "such as srun --gres=gpu:2 --cpus-per-task=8 howmany, or use howmany gpus to measure here");
}

}  // namespace howmany::reports
