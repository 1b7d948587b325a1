// SPDX-License-Identifier: Apache-2.0
// Wraps one block of a model in data_parallel and trains. The other blocks stay as they are.
//
//   PyTorch:  self.block2 = nn.DataParallel(nn.Linear(20, 20))
//
// Usage: data_parallel_block [devices]     (default: cpu:0-1; try cuda:0-1)
#include <cstdio>

#include "core/nn/layers.h"
#include "core/nn/loss.h"
#include "core/nn/optim.h"
#include "core/tensor/rng.h"
#include "parallel/sync/primitives.h"

using namespace howmany;

int main(int argc, char** argv) {
  const std::vector<Device> devices = parse_devices(argc > 1 ? argv[1] : "cpu:0-1");
  const Device device = devices[0];

  LayerPtr block1 = layers::linear(10, 20);
  LayerPtr block2 = data_parallel(layers::linear(20, 20), devices);
  LayerPtr block3 = layers::linear(20, 20);
  LayerPtr model = layers::sequential(std::move(block1), std::move(block2), std::move(block3));
  materialize(*model, {.device = device});

  const Tensor x = randn({64, 10}, Rng(1)).to(device);
  const Tensor target = randn({64, 20}, Rng(2)).to(device);
  const auto optimizer = make_optimizer("sgd", {.lr = 0.1});
  const std::vector<Param*> params = trainable_params(*model);

  for (int step = 1; step <= 5; ++step) {
    zero_grads(params);
    Tape tape;
    const Tensor y = model->forward(x, tape);
    const LossResult loss = compute_loss(Loss::mse, y, target);
    model->backward(loss.dy, tape);
    optimizer->step(params);
    std::printf("Step %d, Loss: %.6f\n", step, loss.value());
  }
  std::printf("%s\n", model->describe().c_str());
}
