// SPDX-License-Identifier: Apache-2.0
#include "parallel/modes/mesh.h"

#include <utility>

namespace howmany {
namespace {

const MeshShape& checked(const MeshShape& shape, int world) {
  HM_REQUIRE(shape.data >= 1 && shape.stage >= 1 && shape.tensor >= 1 && shape.size() == world,
             "[mesh] data {} x stage {} x tensor {} is not a world of {}", shape.data, shape.stage,
             shape.tensor, world);
  return shape;
}

// A group is named by its first rank.
std::unique_ptr<Comm> split_along(int Coordinates::*axis, Comm& world, const MeshShape& shape) {
  return world.split([&](int rank) {
    Coordinates first = coordinates_of(shape, rank);
    const int place = std::exchange(first.*axis, 0);
    return std::pair(rank_of(shape, first), place);
  });
}

}  // namespace

Coordinates coordinates_of(const MeshShape& shape, int rank) {
  return {.data = rank / shape.tensor % shape.data,
          .stage = rank / shape.tensor / shape.data,
          .tensor = rank % shape.tensor};
}

int rank_of(const MeshShape& shape, const Coordinates& at) {
  return (at.stage * shape.data + at.data) * shape.tensor + at.tensor;
}

Mesh::Mesh(Comm& world, const MeshShape& shape)
    : shape_(checked(shape, world.size())),
      at_(coordinates_of(shape, world.rank())),
      data_(split_along(&Coordinates::data, world, shape)),
      stage_(split_along(&Coordinates::stage, world, shape)),
      tensor_(split_along(&Coordinates::tensor, world, shape)) {}

void Mesh::abort(std::string_view why) {
  data_->abort(why);
  stage_->abort(why);
  tensor_->abort(why);
}

}  // namespace howmany
