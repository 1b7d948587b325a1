// A Layer maps a tensor to a tensor (forward) and a gradient to a gradient (backward).
//
// State. A Layer owns parameters but no activations. forward() keeps what backward() needs on a
//   Tape, one per micro-batch in flight. So replicas, micro-batches and recompute need no special
//   case.
// Thread safety. A Layer may be used with several tapes, but by one thread at a time.
//
//   Tape tape({.training = true});
//   tape.set_input(x);
//   Tensor y = model.forward(x, tape);
//   tape.on_final([](Param& p) { /* p.grad is final */ });
//   model.backward(dy, tape);
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/backends/backend.h"

namespace howmany {

// The initial values of a parameter: `value`, uniform in [-value, value), or normal with mean 0 and
// standard deviation `value`.
struct Init {
  enum Kind { constant, uniform, normal } kind = constant;
  double value = 0;
};

// A trained tensor, or (trainable = false) a buffer such as running statistics. Its address does
// not change while its layer lives.
struct Param {
  std::string
      name;  // own name ("weight"); materialize() makes it the path ("layer1.0.conv1.weight")
  Shape shape{};
  Init init{};
  bool trainable = true;
  Tensor value{}, grad{};  // empty until materialize(); buffers have no grad
  bool has_grad = false;   // false: the next backward overwrites grad; true: adds to it
};

class DeferredGrads;

struct TapeOptions {
  bool training = true;  // false: forward keeps nothing, and backward must not be called
  bool again = false;    // recompute of an earlier forward: running statistics are not updated
  uint64_t seed = 0;     // with step and first_row: makes dropout independent of the world size
  int64_t step = 0;
  int64_t first_row = 0;  // index of this tape's first sample in the global batch
  // Points to the step's step_seed() in memory of the model's device, for steps whose number is not
  // known when they are enqueued. Null: computed from `seed` and `step`.
  const uint64_t* seed_at = nullptr;
  SumOverReplicas sum_statistics = {};  // for batch norm; null: statistics of each replica alone
  DeferredGrads* later = nullptr;       // collects weight gradients; null: computed at once
};

class Tape {
 public:
  explicit Tape(TapeOptions options = {}) : options_(options) {}

  const TapeOptions& options() const { return options_; }
  bool training() const { return options_.training; }

  // A stack. pop() throws std::invalid_argument if it is empty.
  void push(Tensor kept);
  Tensor pop();
  void push_shape(const Shape& shape);  // if backward needs only the shape of x
  Shape pop_shape();
  bool empty() const { return stack_.empty(); }

  // Returns the random key of a layer whose stream is `stream`, for rows of `row_numel` elements.
  DropoutKey draw(uint64_t stream, int64_t row_numel);
  bool drew() const { return drew_; }

  // Sets the model's input, for which no gradient is computed.
  void set_input(const Tensor& x) { input_ = x; }
  bool wants_grad(const Tensor& x) const { return !input_ || !x.shares_storage_with(input_); }

  // Layers call used() for each use of a parameter in forward, and done() for each use whose
  // gradient is complete in backward. The hook runs when the last use is done: the gradient is then
  // final. The hook must outlive backward.
  using Hook = std::function<void(Param&)>;
  void on_final(Hook hook) { hook_ = std::move(hook); }
  bool awaited() const { return hook_ != nullptr; }  // true if there is a hook
  void used(Param& param) { ++uses_[&param]; }
  void done(Param& param);

 private:
  TapeOptions options_;
  std::vector<Tensor> stack_;
  Tensor input_;
  Hook hook_;
  std::map<Param*, int> uses_;
  bool drew_ = false;
};

// Returns the seed of one step.
uint64_t step_seed(uint64_t seed, int64_t step);

class Layer {
 public:
  virtual ~Layer() = default;

  virtual Tensor forward(const Tensor& x, Tape& tape) = 0;
  // Adds to the parameters' gradients. Returns dx, or an empty tensor if dx is not needed (x holds
  // ids, or is the tape's input or a view of it). dy is empty if the layer after returned that.
  virtual Tensor backward(const Tensor& dy, Tape& tape) = 0;

  // Computes the gradients that backward deferred. `rows` are the tensors that it gave to
  // DeferredGrads::add(), joined over all micro-batches.
  virtual void add_grads(std::span<const Tensor>) {}

  virtual Shape output_shape(
      const Shape& x) const = 0;  // throws std::invalid_argument if the shape is not supported
  virtual double forward_flop(const Shape&) const { return 0; }  // multiply and add count as two
  virtual std::string describe() const = 0;                      // "linear(1024, 4096, relu)"
  // Returns a layer of the same structure, not materialized. Replicas are made this way.
  virtual std::unique_ptr<Layer> clone() const = 0;

  // materialize() calls it with the layer's path in the model. The first path is kept, also in
  // clones, so that a replica of a part draws the same random numbers as the original.
  virtual void place(std::string_view) {}

  virtual std::span<Param> own_params() { return {}; }
  struct Child {
    std::string name;
    Layer* layer;
  };
  virtual std::vector<Child> children() { return {}; }
  // True if forward only runs children() one after the other: the model may be cut between them
  // (see units.h).
  virtual bool is_chain() const { return false; }
};

using LayerPtr = std::unique_ptr<Layer>;

// Parameters of a layer and its descendants in forward order; all_params() includes buffers. The
// pointers are valid while the layer lives.
std::vector<Param*> trainable_params(Layer& layer);
std::vector<Param*> all_params(Layer& layer);
int64_t parameter_count(Layer& layer);

struct Materialize {
  Device device{};
  Dtype dtype = Dtype::f32;
  uint64_t seed = 1;
};
// Sets every parameter's name to its path, allocates it, and fills it from (seed, path): equal
// values on any rank or device.
void materialize(Layer& layer, const Materialize& how);
// Sets only the names.
void name_params(Layer& layer);
void zero_grads(std::span<Param* const> params);  // only sets has_grad to false; writes no memory
// Returns the target of a backward: it accumulates if the parameter already has a gradient.
GradOut grad_out(Param& param);

}  // namespace howmany
