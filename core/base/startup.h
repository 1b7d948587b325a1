// SPDX-License-Identifier: Apache-2.0
// The first call of every main().
#pragma once

namespace howmany {

// Opens the closed ones of file descriptors 0, 1 and 2 on /dev/null, so that no file or socket gets
// their numbers. Writes to a closed stdout still fail; writes to a closed stderr have no effect.
// Ignores SIGXFSZ, so that a write beyond `ulimit -f` fails with EFBIG.
// SIGINT, SIGTERM and SIGHUP end the process with exit code 130, until catch_interrupts() or a
// launch replaces that. Call it before the process opens files or starts threads.
void prepare_process();

}  // namespace howmany
