// SPDX-License-Identifier: Apache-2.0
#include "core/nn/deferred_grads.h"

#include <algorithm>
#include <utility>

namespace howmany {
namespace {

Tensor joined(const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return parts[0];
  int64_t rows = 0;
  for (const Tensor& part : parts) rows += part.shape()[0];
  const Tensor& like = parts[0];
  Tensor whole = Tensor::empty(like.shape().with_rows(rows), like.dtype(), like.device());
  rows = 0;
  for (const Tensor& part : parts) {
    whole.rows(rows, rows + part.shape()[0]).copy_from(part);
    rows += part.shape()[0];
  }
  return whole;
}

}  // namespace

void DeferredGrads::add(Layer& layer, std::vector<Tensor> rows) {
  auto entry = std::ranges::find(entries_, &layer, &Entry::layer);
  if (entry == entries_.end())
    entry = entries_.insert(entry, {&layer, std::vector<std::vector<Tensor>>(rows.size())});
  for (size_t i = 0; i < rows.size(); ++i) entry->parts[i].push_back(std::move(rows[i]));
}

void DeferredGrads::run(const Tape::Hook& on_final) {
  for (Entry& entry : entries_) {
    std::vector<Tensor> rows;
    for (std::vector<Tensor>& parts : std::exchange(entry.parts, {}))
      rows.push_back(joined(std::exchange(parts, {})));
    entry.layer->add_grads(rows);
    for (Param& p : entry.layer->own_params()) {
      p.has_grad = true;
      if (on_final) on_final(p);
    }
  }
  entries_.clear();
}

}  // namespace howmany
