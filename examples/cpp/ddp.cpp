// SPDX-License-Identifier: Apache-2.0
// Distributed data parallel: one process per device, each with its own part of the samples.
//
//   PyTorch:  dist.init_process_group(), DistributedDataParallel, DistributedSampler, set_epoch
//
// Usage: ddp [ranks]                                   starts its own processes (default: 2)
//        torchrun --nproc-per-node 2 --no-python ddp   ... or torchrun does
//        srun --ntasks 2 ddp                           ... or srun
#include <cstdio>
#include <cstdlib>

#include "core/nn/layers.h"
#include "core/nn/optim.h"
#include "core/tensor/rng.h"
#include "parallel/launch/launch.h"
#include "parallel/modes/mode.h"

using namespace howmany;

void train(Comm& comm, Device device) {
  const auto dataset = tensor_dataset(randn({100, 10}, Rng(1)), randint(0, 2, {100}, Rng(2)));
  const DistributedSampler sampler(
      {.size = dataset->size(), .rank = comm.rank(), .world = comm.size()});
  Loader loader(*dataset, {.global_batch = 24, .workers = 2, .sampler = sampler, .device = device});

  ModelSpec net{.name = "net", .layer = layers::linear(10, 2), .sample = {10}, .classes = 2};
  const auto ddp = make_mode("ddp", {.model = std::move(net), .comm = &comm, .devices = {device}});
  const auto optimizer = make_optimizer("adam", {.lr = 0.01});

  for (int epoch = 0; epoch < 3; ++epoch) {
    double total = 0;
    loader.start_epoch(epoch);  // sampler.set_epoch(epoch): another order in every epoch
    while (const auto batch = loader.next()) {
      StepLoss loss = ddp->step(*batch);  // forward, backward, and all-reduce of the gradients
      optimizer->step(ddp->params());
      total += loss.value();
    }
    if (comm.rank() == 0)
      std::printf("Epoch %d, Loss: %.4f, %d ranks\n", epoch + 1,
                  total / static_cast<double>(loader.batches_per_epoch()), comm.size());
  }
}

int main(int argc, char** argv) {
  const Place place = place_from_environment();
  if (place.launcher == "alone")
    return launch_processes({argv, argv + argc}, argc > 1 ? std::atoi(argv[1]) : 2).code;
  const auto comm = connect(place, "gloo");  // dist.init_process_group
  train(*comm, {DeviceType::cpu, place.local_rank});
}
