// SPDX-License-Identifier: Apache-2.0
// Trains two models at once, each on its own devices: A on devices 0-1 and B on devices 2-5.
//
//   PyTorch:  CUDA_VISIBLE_DEVICES=0,1 python a.py & CUDA_VISIBLE_DEVICES=2,3,4,5 python b.py
//
// Usage: two_models [devices of A] [devices of B]     (default: cpu:0-1 cpu:2-5)
#include <cstdio>
#include <thread>

#include "core/nn/layers.h"
#include "core/nn/loss.h"
#include "core/nn/optim.h"
#include "core/tensor/rng.h"
#include "parallel/sync/primitives.h"

using namespace howmany;

void train(const char* name, LayerPtr net, const std::vector<Device>& devices) {
  const DeviceScope on(devices[0]);
  const LayerPtr model = data_parallel(std::move(net), devices);
  materialize(*model, {.device = devices[0]});
  const Tensor x = randn({64, 10}, Rng(1)).to(devices[0]);
  const Tensor labels = randint(0, 2, {64}, Rng(2)).to(devices[0]);
  const std::vector<Param*> params = trainable_params(*model);
  const auto optimizer = make_optimizer("sgd", {.lr = 0.1});

  double last = 0;
  for (int step = 0; step < 20; ++step) {
    zero_grads(params);
    Tape tape;
    const LossResult loss =
        compute_loss(Loss::softmax_cross_entropy, model->forward(x, tape), labels);
    model->backward(loss.dy, tape);
    optimizer->step(params);
    last = loss.value();
  }
  std::printf("Model %s on %zu devices, Loss: %.6f\n", name, devices.size(), last);
}

int main(int argc, char** argv) {
  const std::vector<Device> for_a = parse_devices(argc > 1 ? argv[1] : "cpu:0-1");
  const std::vector<Device> for_b = parse_devices(argc > 2 ? argv[2] : "cpu:2-5");
  std::thread a([&] { train("A", layers::linear(10, 2), for_a); });
  std::thread b([&] {
    train("B", layers::sequential(layers::linear(10, 32), layers::relu(), layers::linear(32, 2)),
          for_b);
  });
  a.join();
  b.join();
}
