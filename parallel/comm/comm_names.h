// SPDX-License-Identifier: Apache-2.0
// The communication backends of this build. To add one, see comm_list.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace howmany {

struct Place;  // launch.h

struct CommTraits {
  bool threads = false;                                // ranks may be threads of one process
  bool processes = false;                              // ranks may be processes
  bool gpus = false;                                   // each rank needs its own GPU
  std::string (*unavailable)(const Place&) = nullptr;  // see comm_unavailable(); null: available
};

std::vector<std::string_view> comm_names();
// Returns the backends that can connect `ranks` threads of this process.
std::vector<std::string_view> thread_comm_names(int ranks);
// Throws std::invalid_argument if the name is unknown.
CommTraits comm_traits(std::string_view name);
// Returns why processes at `place` cannot connect over the backend (no GPU, no library, no MPI
// launcher, no rendezvous), or "" if nothing known prevents it. Does not contact other ranks.
std::string comm_unavailable(std::string_view name, const Place& place);

}  // namespace howmany
