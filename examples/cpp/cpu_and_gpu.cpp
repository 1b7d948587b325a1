// SPDX-License-Identifier: Apache-2.0
// Part of a model on the CPU and part on a GPU: the embedding stays on the CPU, the rest is on
// cuda:0 if there is a GPU, else on cpu:1.
//
//   PyTorch:  self.rnn = nn.Linear(10, 10).cuda(0) ... x = self.embedding(x); x = x.cuda(0)
//
// Usage: cpu_and_gpu
#include <cstdio>

#include "core/gpu/gpu.h"
#include "core/nn/layers.h"
#include "core/nn/loss.h"
#include "core/nn/optim.h"
#include "core/tensor/rng.h"
#include "parallel/sync/primitives.h"

using namespace howmany;

int main() {
  const Device cpu = Device::parse("cpu:0");
  const Device other = Device::parse(gpu::count() > 0 ? "cuda:0" : "cpu:1");

  // on_device() places a part, and moves the tensors that go in and the gradients that come back.
  LayerPtr rest = layers::sequential(layers::rnn(10, 10), layers::linear(10, 5));
  const LayerPtr model =
      layers::sequential(layers::embedding(1000, 10), on_device(std::move(rest), other));
  materialize(*model, {.device = cpu});

  const Tensor words = randint(0, 1000, {32, 8}, Rng(1));  // 32 sentences of 8 words
  const Tensor labels = randint(0, 5, {32}, Rng(2));
  const std::vector<Param*> params = trainable_params(*model);
  const auto optimizer = make_optimizer("sgd", {.lr = 0.1});

  for (const Param* param : params)
    std::printf("%s on %s\n", param->name.c_str(), param->value.device().str().c_str());
  for (int step = 1; step <= 5; ++step) {
    zero_grads(params);
    Tape tape;
    const Tensor outputs = model->forward(words, tape);
    const LossResult loss =
        compute_loss(Loss::softmax_cross_entropy, outputs, labels.to(outputs.device()));
    model->backward(loss.dy, tape);
    optimizer->step(params);
    std::printf("Step %d, Loss: %.6f\n", step, loss.value());
  }
}
