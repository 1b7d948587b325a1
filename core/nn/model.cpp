// SPDX-License-Identifier: Apache-2.0
#include "core/nn/model.h"

#include "core/base/error.h"

namespace howmany {

std::vector<std::string_view> model_names() {
  return {
#define X(name, what) #name,
      HM_MODELS(X)
#undef X
  };
}

ModelSpec make_model(std::string_view text) {
  const auto [name, options] = parse_named("model", text);
#define X(id, what) \
  if (name == #id) return models::id(options);
  HM_MODELS(X)
#undef X
  throw std::invalid_argument("[model] " + unknown_name("model", name, model_names()));
}

}  // namespace howmany
