// SPDX-License-Identifier: Apache-2.0
// The process between mpirun and a rank.
//
// mpirun kills all ranks as soon as one exits with an error, and reports little. So the program
// that mpirun starts runs itself again as the rank, writes the exit code to a file, and delays its
// own exit until the other ranks have ended or `grace` has passed.
#pragma once

namespace howmany {

// In a process that launch_processes() started through mpirun: runs this program again, with the
// same arguments, as a rank, and exits with its code. Elsewhere it returns at once. Call it at the
// start of main(), before the process opens files or starts threads.
//
// Files in the launch folder. Each wakes the launcher: pid.<rank> while the rank runs; then
// exit.<rank> with the exit code,
//   or done.<rank> if it is 0.
// Signals. The rank is in a process group of its own, so mpirun's signals do not reach it.
// Lifetime. The rank ends with this process, and this process with mpirun.
void supervise_rank();

}  // namespace howmany
