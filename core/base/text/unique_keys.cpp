// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/unique_keys.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace howmany {

void UniqueKeys::start_object() {
  if (depth_ == objects_.size()) objects_.emplace_back();
  objects_[depth_++].keys.clear();
}

void UniqueKeys::end_object() { --depth_; }

void UniqueKeys::key(const std::string& name) {
  Object& object = objects_[depth_ - 1];
  object.last = name;
  if (object.keys.insert(name).second) return;
  std::string path;
  for (size_t i = 0; i < depth_; ++i) path += (i > 0 ? "." : "") + objects_[i].last;
  throw InputError(fmt::format("[{}] the key \"{}\" appears twice in one object", source_, path));
}

}  // namespace howmany
