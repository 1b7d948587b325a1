// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/comm_error.h"

#include <fmt/format.h>

namespace howmany {

CommError::CommError(std::string_view operation, int rank, int size, std::string_view backend,
                     int peer, std::string_view host, double elapsed_seconds, std::string_view why)
    : Error(fmt::format("[{}] rank {} of {} ({}): {}{}{} after {:.1f} s", operation, rank, size,
                        backend, peer >= 0 ? fmt::format("peer {} ", peer) : "",
                        host.empty() ? "" : fmt::format("on {} ", host), why, elapsed_seconds)),
      rank_(rank),
      peer_(peer) {}

}  // namespace howmany
