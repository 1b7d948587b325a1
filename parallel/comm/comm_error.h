// SPDX-License-Identifier: Apache-2.0
// The error of a collective.
#pragma once

#include <string_view>

#include "core/base/error.h"

namespace howmany {

class CommError : public Error {
 public:
  // "[all_reduce] rank 1 of 4 (gloo): peer 2 on node7 did not arrive after 1.2 s". Ranks are world
  // ranks, also in groups made by split(). The host is empty if all ranks are threads.
  CommError(std::string_view operation, int rank, int size, std::string_view backend, int peer,
            std::string_view host, double elapsed_seconds, std::string_view why);
  int rank() const { return rank_; }
  int peer() const { return peer_; }  // -1 if unknown

 private:
  int rank_, peer_;
};

}  // namespace howmany
