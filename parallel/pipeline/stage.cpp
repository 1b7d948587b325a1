// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/stage.h"

#include "core/base/error.h"
#include "core/nn/deferred_grads.h"
#include "core/ops/ops.h"
#include "core/profile/range.h"
#include "core/tensor/precision.h"
#include "parallel/sync/batch.h"

namespace howmany {
namespace {

// A micro-batch between its forward and its backward.
struct Flight {
  int64_t begin = 0, end = 0;  // rows of the rank's batch
  Tensor x, dy;
  Tape tape;
};

std::vector<Flight> divide(int64_t rows, int micro_batches) {
  std::vector<Flight> flights(static_cast<size_t>(micro_batches));
  for (int m = 0; m < micro_batches; ++m) {
    const Share share{m, micro_batches};
    flights[static_cast<size_t>(m)].begin = share.begin(rows);
    flights[static_cast<size_t>(m)].end = share.end(rows);
  }
  return flights;
}

// The micro-batches in the order in which their messages of one kind arrive.
class Expected {
 public:
  Expected(Task::Kind kind, const std::vector<Task>& tasks) {
    for (const Task& task : tasks)
      if (task.kind == kind) order_.push_back(static_cast<size_t>(task.micro_batch));
  }
  bool more() const { return next_ < order_.size(); }
  size_t next() { return order_[next_++]; }

 private:
  std::vector<size_t> order_;
  size_t next_ = 0;
};

}  // namespace

class Stage::Run {
 public:
  Run(Stage& stage, const Batch& mine, int micro_batches, const Tape::Hook& on_final)
      : stage_(stage),
        options_(stage.options_),
        links_(stage.links_),
        mine_(mine),
        on_final_(on_final),
        flights_(divide(mine.x.shape()[0], micro_batches)),
        tasks_(make_schedule(options_.schedule, {options_.count, options_.index, micro_batches})),
        defers_(tasks_.back().kind == Task::weights),
        inputs_(Task::forward, tasks_),
        gradients_(Task::backward, tasks_) {}

  // One receive of each kind is posted ahead, so that the transfer overlaps computation.
  void go() {
    expect_input();
    expect_gradient();
    int backwards = static_cast<int>(flights_.size());
    for (const Task& task : tasks_) {
      Flight& flight = flights_[static_cast<size_t>(task.micro_batch)];
      if (task.kind == Task::forward) forward(flight);
      if (task.kind == Task::backward) backward(flight, --backwards == 0);
      if (task.kind == Task::weights) weights();
    }
    links_.flush();
  }

  double loss() const {
    double sum = 0;
    for (const Tensor& loss : losses_) sum += loss.item();
    return sum;
  }

 private:
  void expect_input() {
    if (stage_.first() || !inputs_.more()) return;
    links_.from_previous->expect(input_shape(flights_[inputs_.next()]), sent_dtype());
  }
  void expect_gradient() {
    if (stage_.last() || !gradients_.more()) return;
    const Shape x = input_shape(flights_[gradients_.next()]);
    links_.from_next->expect(stage_.layer_->output_shape(x), sent_dtype());
  }
  // A stage does not know its neighbours' devices, so all send the shortest dtype that one stores.
  Dtype sent_dtype() const {
    return options_.sends_whole ? options_.dtype : stored_on_gpus(options_.dtype);
  }
  Shape input_shape(const Flight& flight) const {
    const Shape batch = with_rows_in_front(flight.end - flight.begin, stage_.sample_);
    return stage_.before_->output_shape(batch);
  }

  Tensor receive(Link& link) {
    const Range range(Category::comm, "wait for a stage");
    return stored_for(options_.device, link.receive());
  }
  void send(Link& link, const Tensor& t) const { link.send(t.to(sent_dtype())); }

  Tensor rows_of(const Tensor& t, const Flight& flight) const {
    return placed(t.rows(flight.begin, flight.end), options_.dtype, options_.device);
  }

  Tensor apply(Flight& flight, bool again) {
    flight.tape = Tape({.training = true,
                        .again = again,
                        .seed = options_.seed,
                        .step = stage_.step_,
                        .first_row = mine_.first_row + flight.begin,
                        .sum_statistics = options_.sum_statistics,
                        .later = defers_ ? &later_ : nullptr});
    if (stage_.first()) flight.tape.set_input(flight.x);
    return stage_.layer_->forward(flight.x, flight.tape);
  }

  void forward(Flight& flight) {
    if (!stage_.first()) flight.x = receive(*links_.from_previous);
    expect_input();
    const Tensor y = computed(flight);
    if (!stage_.last()) send(*links_.to_next, y);
    if (options_.recompute) flight.tape = Tape();
  }

  Tensor computed(Flight& flight) {
    const auto scope = stage_.clock_.working();
    const Range range(Category::step, "forward");
    if (stage_.first()) flight.x = ops::stored(rows_of(mine_.x, flight));
    Tensor y = apply(flight, false);
    if (!stage_.last()) return y;
    LossResult loss = loss_of(y, rows_of(mine_.y, flight));
    losses_.push_back(std::move(loss.total));
    flight.dy = std::move(loss.dy);
    return y;
  }

  LossResult loss_of(const Tensor& y, const Tensor& target) const {
    if (options_.logits) return compute_loss(*options_.logits, y, target, mine_.global_rows);
    return compute_loss(stage_.loss_, y, target, mine_.global_rows);
  }

  void backward(Flight& flight, bool final) {
    if (!stage_.last()) flight.dy = receive(*links_.from_next);
    expect_gradient();
    const Tensor dx = computed_back(flight, final);
    if (!stage_.first()) send(*links_.to_previous, dx);
    flight = Flight();
  }

  Tensor computed_back(Flight& flight, bool final) {
    const auto scope = stage_.clock_.working();
    const Range range(Category::step, "backward");
    if (options_.recompute) apply(flight, true);
    if (final) flight.tape.on_final(on_final_);
    return stage_.layer_->backward(flight.dy, flight.tape);
  }

  void weights() {
    const auto scope = stage_.clock_.working();
    const Range range(Category::step, "weight gradients");
    later_.run(on_final_);
  }

  Stage& stage_;
  const StageOptions& options_;
  const StageLinks& links_;
  const Batch& mine_;
  const Tape::Hook& on_final_;
  std::vector<Flight> flights_;
  const std::vector<Task> tasks_;
  const bool defers_;
  DeferredGrads later_;
  Expected inputs_, gradients_;
  std::vector<Tensor> losses_;  // of the micro-batches
};

Stage::Stage(const ModelSpec& model, const StageOptions& options, StageLinks links)
    : options_(options),
      links_(std::move(links)),
      sample_(model.sample),
      loss_(model.loss),
      clock_(options.device) {
  const std::vector<Unit> all = units(*model.layer);
  const auto index = static_cast<size_t>(options.index);
  const size_t begin = options.bounds[index], end = options.bounds[index + 1];
  before_ = part(std::span(all).first(begin));
  layer_ = part(std::span(all).subspan(begin, end - begin));
  const DeviceScope on(options.device);
  materialize(*layer_, {.device = options.device, .dtype = options.dtype, .seed = options.seed});
  params_ = trainable_params(*layer_);
}

void check_stages(std::string_view mode, const ModelSpec& model, int stages) {
  const size_t count = units(*model.layer).size();
  HM_REQUIRE(stages <= static_cast<int>(count),
             "[{}] {} has {} layers to divide, {} stages were requested: take fewer", mode,
             model.name, count, stages);
}

double Stage::step(const Batch& mine, int micro_batches, const Tape::Hook& on_final) {
  const DeviceScope on(options_.device);
  const Range whole(Category::step, "stage step");
  zero_grads(params_);
  Run run(*this, mine, micro_batches, on_final);
  run.go();
  ++step_;
  return run.loss();
}

}  // namespace howmany
