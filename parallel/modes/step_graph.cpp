// SPDX-License-Identifier: Apache-2.0
#include "parallel/modes/step_graph.h"
#include "core/gpu/graph.h"

#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/ops/check.h"
#include "core/profile/range.h"
#include "core/tensor/id_range.h"
#include "parallel/sync/batch.h"

namespace howmany {
namespace {

// Checks the ids of the batch on the host against `bound`. Checks in the graph then see the full
// range [0, bound), which always passes.
void fill_from(const Tensor& source, Tensor& t, const char* what, int64_t bound) {
  const bool ids = t.dtype() == Dtype::i64;
  if (ids) check::below("step", what, source, bound);
  // Converted on the GPU, which is faster than the host.
  t.copy_from(source.dtype() == t.dtype() ? source : source.to(t.device()).to(t.dtype()));
  if (ids) remember_range(t, IdRange{0, bound - 1});
}

// Cuts the captured graph at the gradients that start an exchange.
class Cuts {
 public:
  explicit Cuts(const Exchanges& exchanges) : exchanges_(exchanges) {}

  void operator()(Param& param) {
    final_.push_back(&param);
    const size_t set_off = exchanges_.set_off(final_);
    if (set_off == cuts_) return;
    cuts_ = set_off;
    const auto rest = final_.begin() + std::exchange(told_, std::ssize(final_));
    gpu::outside_graph([ready = exchanges_.ready, some = std::vector(rest, final_.end())] {
      for (Param* p : some) {
        p->has_grad = true;
        ready(*p);
      }
    });
  }

 private:
  const Exchanges& exchanges_;
  std::vector<Param*> final_;
  size_t cuts_ = 0;
  std::ptrdiff_t told_ = 0;
};

}  // namespace

Tensor StepGraph::step(const Batch& batch) {
  check_batch(batch);
  const Kind kind{batch.x.shape(), batch.y.shape(), batch.global_rows, batch.first_row,
                  current_precision()};
  const DeviceScope on(replica_.device());
  if (!captured_ || !(captured_->kind == kind)) {
    seen_ = kind == latest_ ? seen_ + 1 : 1;
    latest_ = kind;
    if (seen_ <= kWarmUps) return replica_.step(batch, exchanges_.ready);
    make_room(kind, batch);
  }
  seen_ = 0;
  fill(batch);
  if (!captured_->graph) capture();
  return launch();
}

void StepGraph::make_room(const Kind& kind, const Batch& batch) {
  captured_.reset();  // frees its memory for the new one
  const auto room = [&](const Tensor& t, Dtype dtype) {
    return Tensor::empty(t.shape(), t.dtype() == Dtype::i64 ? Dtype::i64 : dtype,
                         replica_.device());
  };
  const Dtype stored = stored_dtype(replica_.dtype(), replica_.device());
  const Tensor seed = Tensor::empty({1}, Dtype::i64, replica_.device());
  const auto* const seed_at = static_cast<const uint64_t*>(seed.raw());
  const StepInput in{room(batch.x, stored), room(batch.y, replica_.dtype()), kind.global_rows,
                     kind.first_row, seed_at};
  captured_.emplace(Captured{.kind = kind, .in = in, .seed = seed});
}

void StepGraph::capture() {
  const Range range(Category::step, "capture");
  Captured& now = *captured_;
  try {
    now.graph.emplace(replica_.device().index, [&] {
      Cuts cuts(exchanges_);
      now.out = replica_.run(now.in, std::ref(cuts));
    });
  } catch (const Error& e) {
    throw Error(
        fmt::format("[mode] graph=on: {} cannot be captured: {}", replica_.model().name, e.what()));
  }
  for (Param* p : replica_.params())
    if (p->has_grad) now.params.push_back(p);
}

void StepGraph::fill(const Batch& batch) {
  const ModelSpec& model = replica_.model();
  fill_from(batch.x, captured_->in.x, "id", model.vocabulary);
  fill_from(batch.y, captured_->in.target, "label", model.classes);
}

// A replay is one profiler range. The ranges of its operations were recorded during the capture.
Tensor StepGraph::launch() {
  Captured& now = *captured_;
  const uint64_t flop = replica_.step_flop(now.in.x.shape());
  const Range whole(Category::step, "step", flop);
  const uint64_t seed = replica_.count_step();
  if (now.out.drew) now.seed.copy_from(Tensor::from<int64_t>({static_cast<int64_t>(seed)}, {1}));
  zero_grads(replica_.params());
  {
    const Range range(Category::compute, "graph", flop);
    now.graph->launch();
  }
  for (Param* p : now.params) p->has_grad = true;
  return now.out.loss;
}

}  // namespace howmany
