// SPDX-License-Identifier: Apache-2.0
// Defaults that benches and reports share, so that two commands describe the same step.
#pragma once

#include <cstdint>
#include <string_view>

namespace howmany {

// Returns the samples per device and step of a model, such as "resnet18:image=64".
constexpr int64_t default_batch(std::string_view model) {
  const std::string_view name = model.substr(0, model.find(':'));
  return name == "mlp" ? 128 : name == "simple_net" ? 20 : 16;
}

// The backends of --backend auto, best first. nccl needs a GPU for each rank. gloo needs no
// launcher.
inline constexpr std::string_view kBackendsByPreference[] = {"nccl", "gloo", "mpi", "local"};

}  // namespace howmany
