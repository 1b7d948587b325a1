// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "parallel/modes/mode.h"
#include "parallel/modes/replica.h"
#include "parallel/sync/primitives.h"

namespace howmany {
namespace {

// As torch.nn.DataParallel around the whole model. Outputs are gathered on the first device, which
// also has the loss, the gradients and the optimizer.
class DataParallelMode : public Mode {
 public:
  explicit DataParallelMode(ModeArgs args)
      : replica_(wrapped(args), home(args), args.dtype, args.seed) {
    replica_.accumulate(args.options.accumulate,
                        std::max(1, static_cast<int>(args.devices.size())));
  }

  int micro_batches(int64_t global_rows) const override {
    return replica_.micro_batches(global_rows);
  }
  StepLoss step(const Batch& mine) override { return StepLoss(replica_.step(mine)); }
  std::vector<Param*> params() override { return replica_.params(); }
  std::map<std::string, Tensor> gather() override { return replica_.values(); }

 private:
  static ModelSpec wrapped(ModeArgs& args) {
    ModelSpec model = model_of(args);
    model.layer = howmany::data_parallel(std::move(model.layer), args.devices, args.sync_batchnorm);
    return model;
  }
  static Device home(const ModeArgs& args) {
    return args.devices.empty() ? Device{} : args.devices[0];
  }

  Replica replica_;
};

}  // namespace

std::unique_ptr<Mode> modes::data_parallel(ModeArgs args) {
  return std::make_unique<DataParallelMode>(std::move(args));
}

}  // namespace howmany
