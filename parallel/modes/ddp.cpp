// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "parallel/modes/mode.h"
#include "parallel/modes/replica.h"
#include "parallel/modes/step_graph.h"
#include "parallel/sync/agreement.h"
#include "parallel/sync/batch.h"
#include "parallel/sync/step_clock.h"

namespace howmany {
namespace {

// As torch DistributedDataParallel: one replica per rank, which starts from rank 0's parameters.
// All-reduces of gradients overlap backward.
class Ddp : public Mode {
 public:
  explicit Ddp(ModeArgs args)
      : comm_(*args.comm),
        replica_(model_of(args), args.devices.empty() ? Device{} : args.devices[0], args.dtype,
                 args.seed),
        clock_(replica_.device()) {
    replica_.accumulate(args.options.accumulate, comm_.size());
    follow_rank_0(args.seed);
    sync_ = make_grad_sync(comm_, replica_.params(), args.sync);
    const bool gpu = replica_.device().type == DeviceType::cuda;
    if (args.sync_batchnorm && comm_.size() > 1)
      statistics_.emplace(comm_, replica_,
                          gpu && args.sync.bucketed && replica_.device() == comm_.native_device());
    ready_ = [this](Param& p) { sync_->ready(p); };
    // With buckets on a GPU, ready() at most enqueues copies into them, which count as own work.
    if (!gpu || !args.sync.bucketed)
      ready_ = [this](Param& p) {
        const auto scope = clock_.exchanging();
        sync_->ready(p);
      };
    if (args.options.graph)
      graph_.emplace(replica_,
                     Exchanges{ready_, [this](auto final) { return sync_->exchanges(final); }});
  }

  Share share() const override { return {comm_.rank(), comm_.size()}; }

  int micro_batches(int64_t global_rows) const override {
    return replica_.micro_batches(global_rows);
  }

  StepLoss step(const Batch& mine) override {
    check_rows("ddp", mine.global_rows, comm_.size(), "ranks");
    clock_.begin();
    const Tensor part = graph_ ? graph_->step(mine) : replica_.step(mine, ready_);
    const auto scope = clock_.exchanging();
    StepLoss loss = sync_->finish(part);
    if (statistics_) loss.add(statistics_->last());
    return loss;
  }
  int warm_ups() const override { return graph_ ? StepGraph::kWarmUps : 0; }

  StepReport report() const override {
    const double waited = clock_.times().exchange;
    return {.exposed_communication_seconds = waited, .waited_seconds = waited};
  }

  std::vector<Param*> params() override { return replica_.params(); }

  std::map<std::string, Tensor> gather() override {
    comm_.finish();  // a call that failed in flight spoiled the parameters
    if (statistics_) statistics_->finish();
    return comm_.rank() == 0 ? replica_.values() : std::map<std::string, Tensor>{};
  }

 private:
  void follow_rank_0(uint64_t seed) {
    for (Param* p : replica_.params_and_buffers()) comm_.broadcast(p->value, 0);
    replica_.set_seed(of_rank_0(comm_, seed));
  }

  Comm& comm_;
  Replica replica_;
  std::unique_ptr<GradSync> sync_;
  std::optional<SharedStatistics> statistics_;
  Tape::Hook ready_;  // passes gradients to sync_
  std::optional<StepGraph> graph_;
  StepClock clock_;
};

}  // namespace

std::unique_ptr<Mode> modes::ddp(ModeArgs args) { return std::make_unique<Ddp>(std::move(args)); }

}  // namespace howmany
