// SPDX-License-Identifier: Apache-2.0
#include "parallel/modes/mode.h"
#include "parallel/modes/replica.h"
#include "parallel/modes/step_graph.h"

namespace howmany {
namespace {

class Single : public Mode {
 public:
  explicit Single(ModeArgs args)
      : replica_(model_of(args), args.devices.empty() ? Device{} : args.devices[0], args.dtype,
                 args.seed) {
    replica_.accumulate(args.options.accumulate, 1);
    if (args.options.graph) graph_.emplace(replica_);
  }

  StepLoss step(const Batch& mine) override {
    return StepLoss(graph_ ? graph_->step(mine) : replica_.step(mine));
  }
  int micro_batches(int64_t global_rows) const override {
    return replica_.micro_batches(global_rows);
  }
  int warm_ups() const override { return graph_ ? StepGraph::kWarmUps : 0; }
  std::vector<Param*> params() override { return replica_.params(); }
  std::map<std::string, Tensor> gather() override { return replica_.values(); }

 private:
  Replica replica_;
  std::optional<StepGraph> graph_;
};

}  // namespace

std::unique_ptr<Mode> modes::single(ModeArgs args) {
  return std::make_unique<Single>(std::move(args));
}

}  // namespace howmany
