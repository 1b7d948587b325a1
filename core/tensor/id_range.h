// The range of the ids or labels that a GPU holds, as the host knew it when it sent them: who
// checks them need not fetch them again, which would wait for all that the GPU was asked for.
// Thread-safe as Tensor::attachment, where it is kept.
//
//   const Tensor ids = on_host.to(Device::parse("cuda:0"));   // remembers
//   if (const auto known = known_range(ids); known && known->most < bound) ...
#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace howmany {

struct IdRange {
  int64_t least = 0, most = 0;
};

// `sent` is a whole i64 tensor on a GPU, a copy of `host`.
void remember_range(const Tensor& sent, const Tensor& host);
// As whoever writes into the tensor promises, from now on and until it is written otherwise.
void remember_range(const Tensor& ids, IdRange range);
// That of the tensor it begins with, unless it was written since; nothing where none is known.
std::optional<IdRange> known_range(const Tensor& ids);

}  // namespace howmany
