// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/dtype.h"

namespace howmany {

size_t size_of(Dtype dtype) {
  switch (dtype) {
#define X(name, type) \
  case Dtype::name:   \
    return sizeof(type);
    HM_DTYPES(X)
#undef X
  }
  return 0;
}

std::string_view name_of(Dtype dtype) {
  switch (dtype) {
#define X(name, type) \
  case Dtype::name:   \
    return #name;
    HM_DTYPES(X)
#undef X
  }
  return "?";
}

}  // namespace howmany
