// SPDX-License-Identifier: Apache-2.0
// Captures the training step of a Replica in a CUDA graph (see gpu::Graph), so that the host
// launches a step by one call.
//
// Shapes. The graph has one batch shape. The first kWarmUps steps of a shape run without it, so
//   that lazy initialization is done. So do batches of other shapes, such as the last of an epoch;
//   they do not invalidate the graph.
// Inputs. Batches are copied into tensors of the graph. The seed, which changes every step, is read
//   from GPU memory.
// Outside. The optimizer is not captured, because its parameters change. Exchanges with other ranks
//   are not captured: the graph is cut at each exchange of gradients or batch norm statistics.
// Failure. Capture does not change the model. If capture fails, step() throws, each time.
// Thread safety. One thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/gpu/gpu.h"
#include "core/gpu/graph.h"
#include "core/tensor/precision.h"
#include "parallel/modes/replica.h"

namespace howmany {

// Gradient exchanges during a step.
struct Exchanges {
  Tape::Hook ready = [](Param&) {};  // called when a gradient is final
  // Returns the number of exchanges that the first ready parameters start.
  std::function<size_t(std::span<Param* const>)> set_off = [](auto) { return size_t{0}; };
};

class StepGraph {
 public:
  static constexpr int kWarmUps = 2;

  // The replica must be on a GPU and outlive this.
  explicit StepGraph(Replica& replica, Exchanges exchanges = {})
      : replica_(replica), exchanges_(std::move(exchanges)) {}
  // As Replica::step(). The next step overwrites the loss.
  Tensor step(const Batch& batch);

 private:
  // The properties that are fixed in a graph.
  struct Kind {
    Shape x, y;
    int64_t global_rows = 0, first_row = 0;
    Precision precision = Precision::f32;
    bool operator==(const Kind&) const = default;
  };
  struct Captured {
    Kind kind;
    StepInput in;
    Tensor seed;
    StepOutcome out{};
    std::vector<Param*> params{};       // those that get a gradient
    std::optional<gpu::Graph> graph{};  // captured by the first step
  };

  void make_room(const Kind& kind, const Batch& batch);
  void fill(const Batch& batch);
  void capture();
  Tensor launch();

  Replica& replica_;
  const Exchanges exchanges_;
  std::optional<Captured> captured_;
  Kind latest_;   // of the latest step that ran without the graph
  int seen_ = 0;  // consecutive steps of that kind
};

}  // namespace howmany
