// SPDX-License-Identifier: Apache-2.0
// The tutorial's training loop: Linear 10 -> 2, cross entropy, 100 samples in batches of 20, SGD.
// With several devices, each trains on a part of every batch. The losses stay the same.
//
//   PyTorch:  model = nn.DataParallel(SimpleNet())
//
// Usage: simple_net [devices]     (default: cpu:0; try cpu:0-1 or cuda:0-1)
#include <cstdio>

#include "core/data/loader.h"
#include "core/nn/layers.h"
#include "core/nn/loss.h"
#include "core/nn/optim.h"
#include "core/tensor/rng.h"
#include "parallel/sync/primitives.h"

using namespace howmany;

int main(int argc, char** argv) {
  const std::vector<Device> devices = parse_devices(argc > 1 ? argv[1] : "cpu:0");
  const Device device = devices[0];

  const auto dataset = tensor_dataset(randn({100, 10}, Rng(1)), randint(0, 2, {100}, Rng(2)));
  Loader loader(*dataset, {.global_batch = 20, .shuffle = false, .device = device});

  const LayerPtr model = data_parallel(layers::linear(10, 2), devices);
  materialize(*model, {.device = device, .seed = 1});
  const std::vector<Param*> params = trainable_params(*model);
  const auto optimizer = make_optimizer("sgd", {.lr = 0.1});

  for (int epoch = 0; epoch < 2; ++epoch) {
    double total = 0;
    loader.start_epoch(epoch);
    while (const auto batch = loader.next()) {
      zero_grads(params);
      Tape tape;
      const Tensor outputs = model->forward(batch->x, tape);
      const LossResult loss = compute_loss(Loss::softmax_cross_entropy, outputs, batch->y);
      model->backward(loss.dy, tape);
      optimizer->step(params);
      total += loss.value();
    }
    std::printf("Epoch %d, Loss: %.4f\n", epoch + 1,
                total / static_cast<double>(loader.batches_per_epoch()));
  }
}
