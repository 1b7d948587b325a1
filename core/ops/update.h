// The rules of optimizers as backends apply them: to all parameters of a device at once, so that a
// GPU starts one kernel and a CPU wakes its threads once, however many parameters there are. Values
// and state change in place; gradients do not. Plain values; names and rules are torch.optim's.
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
  Tensor value, grad, velocity;  // velocity is empty where momentum is 0
  bool first_step = false;       // the velocity is the gradient itself
};

struct AdamArgs {
  double lr = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  bool decoupled = false;  // weight decay as AdamW's
};
struct AdamParam {
  Tensor value, grad, m, v;
  int64_t step = 1;  // of this parameter, 1 for the first
};

}  // namespace howmany
