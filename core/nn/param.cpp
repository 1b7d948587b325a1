// SPDX-License-Identifier: Apache-2.0
#include "core/nn/param.h"

namespace howmany {

void zero_grads(std::span<Param* const> params) {
  for (Param* p : params) p->has_grad = false;
}

GradOut grad_out(Param& param) { return {param.grad, param.has_grad}; }

}  // namespace howmany
