// SPDX-License-Identifier: Apache-2.0
// The cases of core_bench: single operations with the shapes of real models, and whole training
// steps. They run on a CPU device or a GPU in the thread's precision. Making a case runs it once
// and checks the result. Throws Error if it is wrong.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/device.h"
#include "core/tensor/shape.h"

namespace howmany::benches {

struct CoreCase {
  std::string name;  // "conv2d/64-64x56x56-3x3/batch:32/forward"
  double flop = 0;   // multiply and add count as two; 0: memory-bound
  double bytes = 0;  // each input read once, each output written once; 0: compute-bound
  double samples = 0, parameters = 0;  // of a training step; else 0
  // Makes and checks the inputs. The returned function is timed.
  std::function<std::function<void()>()> make{};
};

// The device of the cases and their shapes.
struct CorePlace {
  Device device{};
  Shape image{32, 56, 56, 64}, rows{4096, 1024};
  int64_t parameters = 4096;  // a square matrix of this side
  std::vector<std::pair<int64_t, int64_t>> linears{{1024, 4096}, {4096, 4096}, {4096, 1000}};
  std::vector<int64_t> linear_batches{128, 512};
  int64_t conv_batch = 32;
  std::vector<std::pair<int64_t, int64_t>> attended{{16, 128}, {1, 1024}};  // samples, length
  int64_t heads = 4;
  std::vector<std::pair<std::string, int64_t>> steps{{"mlp", 128},
                                                     {"mlp", 512},
                                                     {"resnet18", 32},
                                                     {"gpt2", 8},
                                                     {"vit_b_16:layers=2", 4},
                                                     {"bert_base:layers=2", 8},
                                                     {"llama", 8}};
  std::vector<std::pair<std::string, std::string>> updates{{"sgd", "simple_net"},
                                                           {"sgd", "mlp"},
                                                           {"sgd", "resnet18"},
                                                           {"adamw", "resnet18"},
                                                           {"adamw", "gpt2"}};
};
// Returns the shapes for the device: the defaults for a CPU, larger ones that exceed the caches for
// a GPU.
CorePlace place_on(Device device);

std::vector<CoreCase> memory_cases(const CorePlace& place);  // memory-bound operations
std::vector<CoreCase> operation_cases(const CorePlace& place);
std::vector<CoreCase> step_cases(const CorePlace& place);

}  // namespace howmany::benches
