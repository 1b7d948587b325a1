// The steps of a Replica on a GPU as one graph (see gpu::Graph), so that the host asks for a step
// by one call. The graph is of one shape of batch: the first steps of a shape run as ever, so that
// all is there that is made once, and so do batches of another shape, like the last of an epoch,
// which the graph outlasts. Batches are copied into tensors of its own; what changes from step to
// step is there too, in the GPU's memory. The optimizer's numbers change as well, so it stays
// outside, and so do exchanges with other ranks: the graph is cut where gradients set one off, and
// where batch norm shares its statistics. Capturing does nothing to the model; when it fails step()
// throws why, each time. One thread.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/gpu/gpu.h"
#include "core/tensor/precision.h"
#include "parallel/modes/replica.h"

namespace howmany {

// Of gradients, while a step runs.
struct Exchanges {
  Tape::Hook ready = [](Param&) {};  // called as each becomes final
  // How many are set off by the first that do.
  std::function<size_t(std::span<Param* const>)> set_off = [](auto) { return size_t{0}; };
};

class StepGraph {
 public:
  static constexpr int kWarmUps = 2;

  // The replica, on a GPU, outlives this.
  explicit StepGraph(Replica& replica, Exchanges exchanges = {})
      : replica_(replica), exchanges_(std::move(exchanges)) {}
  // As Replica::step(); the next step writes the loss anew.
  Tensor step(const Batch& batch);

 private:
  // What is fixed within a graph.
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
    std::vector<Param*> params{};       // that get a gradient
    std::optional<gpu::Graph> graph{};  // made by the first step
  };

  void make_room(const Kind& kind, const Batch& batch);
  void fill(const Batch& batch);
  void capture();
  Tensor launch();

  Replica& replica_;
  const Exchanges exchanges_;
  std::optional<Captured> captured_;
  Kind latest_;   // of the steps since the last launch
  int seen_ = 0;  // of that kind in a row
};

}  // namespace howmany
