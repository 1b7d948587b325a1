// SPDX-License-Identifier: Apache-2.0
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
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/nn/param.h"
#include "core/nn/tape.h"

namespace howmany {

struct Cut;  // cut.h

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

  // Throws std::invalid_argument if the shape is not supported.
  virtual Shape output_shape(const Shape& x) const = 0;
  virtual double forward_flop(const Shape&) const { return 0; }  // multiply and add count as two
  virtual std::string describe() const = 0;                      // "linear(1024, 4096, relu)"
  // Returns a layer of the same structure, not materialized. Replicas are made this way.
  virtual std::unique_ptr<Layer> clone() const = 0;

  // materialize() calls it with the layer's path in the model. The first path is kept, also in
  // clones, so that a replica of a part draws the same random numbers as the original.
  virtual void place(std::string_view) {}

  // Returns the device of the layer and its children if it differs from the rest of the model's.
  virtual std::optional<Device> own_device() const { return {}; }
  virtual std::span<Param> own_params() { return {}; }
  struct Child {
    std::string name;
    Layer* layer;
  };
  virtual std::vector<Child> children() { return {}; }
  // True if forward only runs children() one after the other: the model may be cut between them
  // (see units.h).
  virtual bool is_chain() const { return false; }
  // The chain within a layer that uses the parameters of the chain's first unit again after it
  // (tied_head); else null. over() returns such a layer over another chain with that first unit.
  virtual Layer* inner_chain() { return nullptr; }
  virtual std::unique_ptr<Layer> over(std::unique_ptr<Layer>) const { return nullptr; }
  // Returns such a layer over other children, in the order of children(). Null: not supported.
  virtual std::unique_ptr<Layer> with_children(std::vector<std::unique_ptr<Layer>>) const {
    return nullptr;
  }

  // Tensor parallelism, see cut.h. `place` is a Cut::Place. cut() requires can_cut().
  virtual bool can_cut(int) const { return false; }
  virtual std::unique_ptr<Layer> cut(const Cut&) const { return nullptr; }
  // True if y of a position of [N,T,K] depends on x of that position only.
  virtual bool is_per_position() const { return false; }
  // Cut::blocks that the layer takes.
  virtual std::vector<int64_t> input_blocks() const { return {1}; }
};

using LayerPtr = std::unique_ptr<Layer>;

// Returns the shape with another last extent. Throws std::invalid_argument, naming `layer`, unless
// x has at least two extents and the last one is `from`.
Shape replace_last(const char* layer, const Shape& x, int64_t from, int64_t to);

// Paths of children: "h.0" and "attn" make "h.0.attn". An empty name adds nothing.
std::string join_path(const std::string& path, const std::string& name);
// Visits a layer and its descendants in forward order.
using VisitLayer = std::function<void(Layer&, const std::string& path)>;
void for_each_layer(Layer& layer, const VisitLayer& visit, const std::string& path = "");

// Parameters of a layer and its descendants in forward order; all_params() includes buffers. The
// pointers are valid while the layer lives.
std::vector<Param*> trainable_params(Layer& layer);
std::vector<Param*> all_params(Layer& layer);
int64_t parameter_count(Layer& layer);
// FLOP of a training step: one forward and two backward passes, without the gradient of the input,
// which is not computed. Multiply and add count as two.
double step_flop(Layer& layer, const Shape& x);

struct Materialize {
  Device device{};
  Dtype dtype = Dtype::f32;
  uint64_t seed = 1;
};
// Sets every parameter's name to its path, allocates it on how.device or its layer's own_device(),
// and fills it from (seed, path): equal values on any rank or device.
void materialize(Layer& layer, const Materialize& how);
// Sets only the names.
void name_params(Layer& layer);
}  // namespace howmany
