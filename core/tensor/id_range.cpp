// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/id_range.h"

#include <algorithm>

namespace howmany {
namespace {

struct Kept {
  IdRange range;
  uint64_t version;
};

}  // namespace

void remember_range(const Tensor& sent, const Tensor& host) {
  const auto values = host.values<int64_t>();
  if (values.empty()) return;
  const auto [least, most] = std::ranges::minmax(values);
  remember_range(sent, IdRange{least, most});
}

void remember_range(const Tensor& ids, IdRange range) {
  ids.set_attachment(std::make_shared<Kept>(Kept{range, ids.version()}));
}

std::optional<IdRange> known_range(const Tensor& ids) {
  if (ids.dtype() != Dtype::i64 || ids.device().type != DeviceType::cuda) return std::nullopt;
  const auto kept = std::static_pointer_cast<Kept>(ids.attachment());
  if (!kept || kept->version != ids.version()) return std::nullopt;
  return kept->range;
}

}  // namespace howmany
