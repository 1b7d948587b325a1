// SPDX-License-Identifier: Apache-2.0
#include "examples/adding/summed.h"
#include "parallel/modes/replica.h"

namespace howmany {
namespace {

// Data parallelism without overlap: all-reduces every gradient after backward.
class Summed : public Mode {
 public:
  explicit Summed(ModeArgs args)
      : comm_(*args.comm),
        replica_(std::move(args.model), args.devices.empty() ? Device{} : args.devices[0],
                 args.dtype, args.seed) {}

  Share share() const override { return {comm_.rank(), comm_.size()}; }

  StepLoss step(const Batch& mine) override {
    Tensor loss = replica_.step(mine);
    for (Param* p : replica_.params()) comm_.all_reduce(p->grad);
    comm_.all_reduce(loss);
    return StepLoss(loss);
  }

  std::vector<Param*> params() override { return replica_.params(); }

  std::map<std::string, Tensor> gather() override {
    return comm_.rank() == 0 ? replica_.values() : std::map<std::string, Tensor>{};
  }

 private:
  Comm& comm_;
  Replica replica_;
};

}  // namespace

std::unique_ptr<Mode> modes::summed(ModeArgs args) {
  return std::make_unique<Summed>(std::move(args));
}

}  // namespace howmany
