#include "parallel/mode.h"
#include "parallel/modes/replica.h"

namespace howmany {
namespace {

class Single : public Mode {
 public:
  explicit Single(ModeArgs args)
      : replica_(std::move(args.model), args.devices.empty() ? Device{} : args.devices[0],
                 args.dtype, args.seed) {}

  double step(const Batch& mine) override { return replica_.step(mine); }
  std::vector<Param*> params() override { return replica_.params(); }
  std::map<std::string, Tensor> gather() override { return replica_.values(); }

 private:
  Replica replica_;
};

}  // namespace

std::unique_ptr<Mode> modes::single(ModeArgs args) {
  return std::make_unique<Single>(std::move(args));
}

}  // namespace howmany
