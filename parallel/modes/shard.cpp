// SPDX-License-Identifier: Apache-2.0
#include "parallel/modes/shard.h"

#include <map>
#include <string>
#include <utility>

#include "core/ops/ops.h"

namespace howmany {

// A group of one rank has nothing to divide.
Shard::Shard(std::vector<Param*> params, Comm& comm, int level, Dtype read)
    : comm_(comm),
      level_(comm.size() == 1 ? 1 : level),
      params_(std::move(params)),
      read_(level_ == 3 ? read : params_[0]->value.dtype()) {
  const Dtype kept = params_[0]->value.dtype();
  int64_t end = 0;
  for (const Param* p : params_) {
    begins_.push_back(end);
    end += aligned_numel(p->shape.numel());
  }
  part_.name = params_[0]->name;
  part_.shape = {aligned_numel((end + comm_.size() - 1) / comm_.size())};
  begins_.push_back(part_.shape.numel() * comm_.size());
  values_ = allocate(kept);
  clear_gaps(values_);
  for (size_t i = 0; i < params_.size(); ++i) view_of(values_, i).copy_from(params_[i]->value);
  point_values();
  part_.value = level_ == 3 ? own(values_).clone() : own(values_);
  for (Param* p : params_) p->grad = Tensor();
  if (level_ == 1) {
    grads_ = allocate(kept);
    grads_.zero();
  }
  part_.grad = level_ == 1 ? own(grads_) : Tensor::zeros(part_.shape, kept, values_.device());
  release_values();
}

Tensor Shard::allocate(Dtype dtype) const {
  const Tensor& like = part_.value ? part_.value : params_[0]->value;
  return Tensor::empty({begins_.back()}, dtype, like.device());
}

Tensor Shard::own(const Tensor& flat) const {
  const int64_t numel = part_.shape.numel();
  return flat.flat(comm_.rank() * numel, (comm_.rank() + 1) * numel);
}

Tensor Shard::view_of(const Tensor& flat, size_t param) const {
  const Shape& shape = params_[param]->shape;
  return flat.flat(begins_[param], begins_[param] + shape.numel()).view(shape);
}

void Shard::point_values() {
  for (size_t i = 0; i < params_.size(); ++i) params_[i]->value = view_of(values_, i);
}

// Memory that was never written may hold NaN.
void Shard::clear_gaps(Tensor& flat) const {
  for (size_t i = 0; i < params_.size(); ++i) {
    const int64_t begin = begins_[i] + params_[i]->shape.numel(), end = begins_[i + 1];
    if (begin < end) flat.flat(begin, end).zero();
  }
}

void Shard::gather() {
  if (state_ != State::parts) return;
  if (!values_) values_ = allocate(read_);
  coming_ = comm_.all_gather_async(part_.value.to(read_), values_);
  state_ = State::coming;
}

void Shard::wait_values() {
  gather();
  if (state_ == State::whole) return;
  std::exchange(coming_, {}).wait();
  if (level_ == 3) point_values();
  state_ = State::whole;
}

void Shard::release_values() {
  if (level_ != 3) return;
  for (Param* p : params_) p->value = Tensor();
  values_ = Tensor();
  state_ = State::parts;
}

void Shard::begin_grads(bool more) {
  more_ = more;
  if (more && level_ == 1) return;
  if (!grads_) {
    grads_ = allocate(part_.grad.dtype());
    clear_gaps(grads_);
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    params_[i]->grad = view_of(grads_, i);
    params_[i]->has_grad = false;
  }
}

void Shard::reduce() {
  for (Param* p : params_) {
    if (!p->has_grad) p->grad.zero();
    if (level_ > 1) p->grad = Tensor();
  }
  if (more_ && level_ > 1)
    arriving_ = Tensor::empty(part_.shape, part_.grad.dtype(), part_.grad.device());
  leaving_ = comm_.reduce_scatter_async(grads_, arriving_ ? arriving_ : part_.grad);
}

void Shard::wait_grads() {
  std::exchange(leaving_, {}).wait();
  if (level_ > 1) grads_ = Tensor();
  if (arriving_) ops::axpy(1, std::exchange(arriving_, {}), part_.grad);
  part_.has_grad = true;
}

void Shard::gather_whole(const Tensor& part, std::map<std::string, Tensor>& found) {
  Tensor all = allocate(part.dtype());
  comm_.all_gather(part, all);
  for (size_t i = 0; i < params_.size(); ++i) found[params_[i]->name] = view_of(all, i);
}

}  // namespace howmany
