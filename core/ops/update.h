// SPDX-License-Identifier: Apache-2.0
// Arguments of optimizer updates. A backend updates all parameters of a device in one call: one
// kernel on a GPU, one parallel region on a CPU. Values and state change in place; gradients do not
// change. Rules and names are those of torch.optim.
//
//   std::vector<SgdParam> params{{w, dw, velocity, true}, {b, db, velocity_of_b, true}};
//   backend_for(w).sgd(params, {.lr = 0.1, .momentum = 0.9});
#pragma once

#include "core/tensor/tensor.h"

namespace howmany {

struct SgdArgs {
  double lr = 0, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};
struct SgdParam {
  Tensor value, grad, velocity;  // velocity is empty if momentum is 0
  bool first_step = false;       // true: the velocity becomes the gradient itself
};

struct AdamArgs {
  double lr = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  bool decoupled = false;  // weight decay as in AdamW
};
struct AdamParam {
  Tensor value, grad, m, v;
  int64_t step = 1;  // of this parameter, from 1
};

}  // namespace howmany
