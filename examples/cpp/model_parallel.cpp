// SPDX-License-Identifier: Apache-2.0
// Model parallel: the first part of a model is on one device, the second on another. The labels are
// moved to the device of the outputs, so that the loss is computed there.
//
//   PyTorch:  part1.to("cuda:0"); part2.to("cuda:1"); loss_fn(outputs, labels.to(outputs.device))
//
// Usage: model_parallel [two devices]     (default: cpu:0-1; try cuda:0-1)
#include <cstdio>

#include "core/nn/layers.h"
#include "core/nn/loss.h"
#include "core/nn/optim.h"
#include "core/tensor/rng.h"
#include "parallel/sync/primitives.h"

using namespace howmany;

int main(int argc, char** argv) {
  const std::vector<Device> devices = parse_devices(argc > 1 ? argv[1] : "cpu:0-1");
  const Device first = devices.front(), second = devices.back();

  LayerPtr part1 = layers::linear(10, 64, Activation::relu);
  LayerPtr part2 = layers::linear(64, 5);
  const LayerPtr model =
      layers::sequential(on_device(std::move(part1), first), on_device(std::move(part2), second));
  materialize(*model, {.seed = 1});

  const Tensor inputs = randn({64, 10}, Rng(1)).to(first);
  const Tensor labels = randint(0, 5, {64}, Rng(2)).to(first);
  const std::vector<Param*> params = trainable_params(*model);
  const auto optimizer = make_optimizer("adam", {.lr = 0.01});

  for (int step = 1; step <= 5; ++step) {
    zero_grads(params);
    Tape tape;
    const Tensor outputs = model->forward(inputs, tape);
    const LossResult loss =
        compute_loss(Loss::softmax_cross_entropy, outputs, labels.to(outputs.device()));
    model->backward(loss.dy, tape);
    optimizer->step(params);
    std::printf("Step %d, Loss: %.6f, outputs on %s\n", step, loss.value(),
                outputs.device().str().c_str());
  }
}
