// SPDX-License-Identifier: Apache-2.0
// Keeps the algorithms that were measured on the GPUs (core/gpu/tuning.h) for later processes, and
// lets all ranks of a job use the same ones.
//
// File. $XDG_CACHE_HOME/howmany/tuning/LIBRARIES.json, or the same in ~/.cache. A choice is the
//   position in a list of a library, so there is one file for each pair of library versions. The
//   entries of a file are by problem and kind of GPU. Without a home there is no file.
// Failure. A file that cannot be read, or has other contents, is as good as none. A folder that
//   cannot be written keeps nothing. Both are silent, because only time is lost.
// Thread safety. The calls are collective. One thread per rank.
#pragma once

#include <string>

#include "parallel/comm/comm.h"

namespace howmany::benches {

// Returns the path of the file; empty if there is none.
std::string tuning_file();

// Gives every rank the choices in the file of rank 0.
void use_kept_tuning(Comm& comm);
// Gives every rank the choices of the lowest rank that made them. With `keep`, rank 0 writes them
// to its file.
void agree_on_tuning(Comm& comm, bool keep);

}  // namespace howmany::benches
