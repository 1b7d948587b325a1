// SPDX-License-Identifier: Apache-2.0
#include "parallel/modes/tensor_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/nn/layers.h"

namespace howmany {
namespace {

// Copies between a part and its place in the whole, on the CPU.
class PartCopy {
 public:
  PartCopy(const CutParam& param, int index, int count, Dtype dtype) {
    const int64_t element = size_of(dtype) * param.inner;
    int64_t at = 0;
    for (int64_t i = 0; i < param.outer; ++i)
      for (const int64_t block : param.divided) {
        const int64_t begin = begin_of_part(block, index, count),
                      end = begin_of_part(block, index + 1, count);
        pieces_.push_back({static_cast<size_t>((at + begin) * element),
                           static_cast<size_t>((end - begin) * element)});
        numel_ += (end - begin) * param.inner;
        at += block;
      }
  }

  int64_t numel() const { return numel_; }
  void from_whole(const std::byte* whole, std::byte* part) const {
    for (const Piece& piece : pieces_) {
      std::memcpy(part, whole + piece.at, piece.bytes);
      part += piece.bytes;
    }
  }
  void to_whole(const std::byte* part, std::byte* whole) const {
    for (const Piece& piece : pieces_) {
      std::memcpy(whole + piece.at, part, piece.bytes);
      part += piece.bytes;
    }
  }

 private:
  struct Piece {
    size_t at, bytes;  // of the whole
  };
  std::vector<Piece> pieces_;
  int64_t numel_ = 0;
};

const std::byte* read(const Tensor& t) { return static_cast<const std::byte*>(t.raw()); }
std::byte* write(Tensor& t) { return static_cast<std::byte*>(t.mutable_raw()); }

}  // namespace

TensorParts::TensorParts(ModelSpec& whole, Comm& group, Device device,
                         std::function<void(Tensor)> sum, std::optional<Positions> positions)
    : whole_(whole), group_(group) {
  refuse_mix(device);
  name_params(*whole.layer);
  for (const Param* p : all_params(*whole.layer)) shapes_[p->name] = p->shape;
  cut_model_ = cut_model(whole, {.index = group.rank(),
                                 .count = group.size(),
                                 .sum = std::move(sum),
                                 .positions = std::move(positions)});
  for (const CutParam& param : cut_model_.params) cut_[param.path] = param;
}

// The ranks sum activations, which a GPU may store in bf16 and a CPU does not.
void TensorParts::refuse_mix(Device device) {
  Tensor gpus = Tensor::full({1}, device.type == DeviceType::cuda ? 1 : 0, Dtype::f64);
  group_.all_reduce(gpus);
  const int count = static_cast<int>(gpus.item()), all = group_.size();
  HM_REQUIRE(count == 0 || count == all,
             "[tensor] {} of {} ranks compute on GPUs: take devices of one type", count, all);
}

ModelSpec TensorParts::take_model() {
  return {.name = whole_.name,
          .layer = std::move(cut_model_.layer),
          .sample = whole_.sample,
          .input = whole_.input,
          .vocabulary = whole_.vocabulary,
          .classes = whole_.classes,
          .labels = whole_.labels,
          .loss = whole_.loss};
}

std::optional<DividedLogits> TensorParts::logits(std::function<Tensor(Tensor)> gather) const {
  if (!cut_model_.logits) return {};
  return DividedLogits{.first = begin_of_part(whole_.classes, group_.rank(), group_.size()),
                       .classes = whole_.classes,
                       .gather = std::move(gather)};
}

std::vector<Param*> TensorParts::of_positions(const std::vector<Param*>& mine) const {
  std::vector<Param*> found;
  for (Param* p : mine)
    if (std::ranges::count(cut_model_.of_positions, p->name) > 0) found.push_back(p);
  return found;
}

Tensor TensorParts::empty_for_all(const Tensor& part) const {
  const Shape& shape = part.shape();
  return Tensor::empty({group_.size(), shape[0], shape[1]}, part.dtype(), part.device());
}

void TensorParts::take_initial(const std::vector<Param*>& mine, Dtype dtype, uint64_t seed) {
  std::map<std::string, Param*> parts;
  for (Param* p : mine)
    if (cut_.contains(p->name)) parts[p->name] = p;
  for_each_layer(*whole_.layer, [&](Layer& layer, const std::string& path) {
    const bool any = std::ranges::any_of(layer.own_params(),
                                         [&](const Param& p) { return parts.contains(p.name); });
    if (!any) return;
    std::vector<layers::Named> one;
    one.push_back({path, layer.clone()});
    const LayerPtr alone = layers::sequential(std::move(one));
    materialize(*alone, {.dtype = dtype, .seed = seed});
    for (const Param* p : all_params(*alone))
      if (const auto part = parts.find(p->name); part != parts.end())
        part->second->value.copy_from(own_part(cut_.at(p->name), p->value));
  });
}

Tensor TensorParts::own_part(const CutParam& param, const Tensor& whole) const {
  const PartCopy copy(param, group_.rank(), group_.size(), whole.dtype());
  Tensor part = Tensor::empty({copy.numel()}, whole.dtype());
  copy.from_whole(read(whole), write(part));
  return part;
}

Tensor TensorParts::whole(const Param& p, const Tensor& value) {
  const auto found = cut_.find(p.name);
  if (found == cut_.end()) return value.clone();
  const int count = group_.size();
  int64_t most = 0;
  for (int i = 0; i < count; ++i)
    most = std::max(most, PartCopy(found->second, i, count, value.dtype()).numel());
  Tensor mine = Tensor::zeros({most}, value.dtype());
  mine.flat(0, value.numel()).copy_from(value.view({value.numel()}));
  const Tensor all = Tensor::empty({most * count}, value.dtype());
  group_.all_gather(mine, all);
  Tensor joined = Tensor::empty(shapes_.at(p.name), value.dtype());
  for (int i = 0; i < count; ++i)
    PartCopy(found->second, i, count, value.dtype())
        .to_whole(read(all.flat(i * most, (i + 1) * most)), write(joined));
  return joined.to(value.device());
}

}  // namespace howmany
