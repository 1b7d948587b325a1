// A Layer maps a tensor to a tensor and back. It owns parameters and no activations: what backward
// needs goes on a Tape, one per micro-batch in flight, so replicas, micro-batches and recompute
// need no special case. One Layer may run on several tapes, not from several threads at once.
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

// How a parameter starts: at value, uniform in [-value, value), or normal with deviation value.
struct Init {
  enum Kind { constant, uniform, normal } kind = constant;
  double value = 0;
};

// A trained tensor, or (trainable = false) a buffer such as running statistics. Stays at one
// address for its layer's life.
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
  bool training = true;  // false: forward keeps nothing, so there is no backward
  bool again = false;    // a forward seen before (recompute): running statistics stay as they are
  uint64_t seed = 0;     // with step and first_row: dropout draws the same values at any world size
  int64_t step = 0;
  int64_t first_row = 0;  // place of this tape's first sample in the global batch
  // On the model's device, the step_seed() of a step whose number is not known yet; null: `step`
  // is.
  const uint64_t* seed_at = nullptr;
  SumOverReplicas sum_statistics = {};  // of batch norm; null: each replica has its own
  DeferredGrads* later = nullptr;       // where weight gradients wait; null: they do not
};

class Tape {
 public:
  explicit Tape(TapeOptions options = {}) : options_(options) {}

  const TapeOptions& options() const { return options_; }
  bool training() const { return options_.training; }

  // Last in, first out. pop() on an empty tape is a caller's mistake.
  void push(Tensor kept);
  Tensor pop();
  void push_shape(const Shape& shape);  // for layers whose backward needs no more of x
  Shape pop_shape();
  bool empty() const { return stack_.empty(); }

  // What a layer draws by that stands in this stream, for rows of so many elements.
  DropoutKey draw(uint64_t stream, int64_t row_numel);
  bool drew() const { return drew_; }

  // The model's input: no gradient for it is computed.
  void set_input(const Tensor& x) { input_ = x; }
  bool wants_grad(const Tensor& x) const { return !input_ || !x.shares_storage_with(input_); }

  // Layers announce each use of a parameter in forward and each finished gradient in backward; the
  // hook runs when the last use has been undone. The hook must outlive backward.
  using Hook = std::function<void(Param&)>;
  void on_final(Hook hook) { hook_ = std::move(hook); }
  bool awaited() const { return hook_ != nullptr; }  // someone does something as gradients finish
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

// Each step of a seed is a seed of its own.
uint64_t step_seed(uint64_t seed, int64_t step);

class Layer {
 public:
  virtual ~Layer() = default;

  virtual Tensor forward(const Tensor& x, Tape& tape) = 0;
  // Adds to the parameters' gradients; returns dx, or an empty tensor when nobody wants it. dy is
  // empty in turn for a layer whose output is a view of the tape's input.
  virtual Tensor backward(const Tensor& dy, Tape& tape) = 0;

  // The gradients that backward left to the tape's DeferredGrads, from the rows it gave, of all
  // micro-batches.
  virtual void add_grads(std::span<const Tensor>) {}

  virtual Shape output_shape(
      const Shape& x) const = 0;  // throws std::invalid_argument when x does not fit
  virtual double forward_flop(const Shape&) const { return 0; }  // multiply and add count as two
  virtual std::string describe() const = 0;                      // "linear(1024, 4096, relu)"
  // Same structure, not materialized; the way replicas are made.
  virtual std::unique_ptr<Layer> clone() const = 0;

  // Told by materialize(): where this layer stands. The first place stays, also in clones, so that
  // a replica of a part draws the same random numbers as the original.
  virtual void place(std::string_view) {}

  virtual std::span<Param> own_params() { return {}; }
  struct Child {
    std::string name;
    Layer* layer;
  };
  virtual std::vector<Child> children() { return {}; }
  // Nothing but children() one after the other: a model may be cut between them (see units.h).
  virtual bool is_chain() const { return false; }
};

using LayerPtr = std::unique_ptr<Layer>;

// Parameters of a tree in forward order, with and without buffers. Pointers stay valid as long as
// the layer.
std::vector<Param*> trainable_params(Layer& layer);
std::vector<Param*> all_params(Layer& layer);
int64_t parameter_count(Layer& layer);

struct Materialize {
  Device device{};
  Dtype dtype = Dtype::f32;
  uint64_t seed = 1;
};
// Names every parameter by its path, allocates and fills it from (seed, path): the same values on
// any rank or device.
void materialize(Layer& layer, const Materialize& how);
// The naming alone: for who needs to know what there is, not its values.
void name_params(Layer& layer);
void zero_grads(std::span<Param* const> params);  // marks only; nothing is written
// The gradient slot for a backward: adds when a gradient is already there.
GradOut grad_out(Param& param);

}  // namespace howmany
