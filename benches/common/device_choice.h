// SPDX-License-Identifier: Apache-2.0
// The devices of a run: from --devices, from the launcher, or the ones that this host has. And the
// communication backend that suits them.
#pragma once

#include <string>
#include <vector>

#include "benches/common/workload.h"

namespace howmany::benches {

// Returns the devices of "cpu:0,cpu:1", or the first `count` cpu devices if the list is empty.
std::vector<Device> devices_from(const std::string& list, int count);
// Returns true if a run without --devices uses GPUs: there is a GPU, and the kernels are not CPU
// kernels.
bool means_gpus(const Workload& work);
bool all_gpus(const std::vector<Device>& devices);
// Returns the listed devices. If the list has the devices of one host, repeats them for each host.
std::vector<Device> devices_given(const std::string& list, const Place& place);
// Sets one device per rank of `place`: the listed ones, or the GPUs or cpu devices of each host by
// local rank, or the own device that Slurm bound each task to. Throws std::invalid_argument if
// there are fewer GPUs than ranks.
void place_devices(Workload& work, const std::string& list, const Place& place, bool gpus);
// Returns the index of this rank's GPU, on which it communicates. Returns -1 if it has none, or if
// one process drives all GPUs.
int gpu_of(const Workload& work, const Place& place);
// Returns the flags of its results: "oversubscribed"; "rehearsal" if ranks share a GPU; "short of
// cores" if there are fewer cores than GPUs that they feed.
std::vector<std::string> marks_of(const Workload& work);
// The backend that `auto` selects, and the reason.
struct Choice {
  std::string name, because;
};
Choice choose_backend(const Workload& work, const Place& place);

}  // namespace howmany::benches
