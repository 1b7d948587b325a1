// SPDX-License-Identifier: Apache-2.0
// Protects the login nodes of Slurm clusters from benchmarks on all cores.
#pragma once

namespace howmany::reports {

// Throws InputError, with the srun command to use instead, if sinfo lists partitions and this
// process is in no Slurm job.
void refuse_login_node();

}  // namespace howmany::reports
