// SPDX-License-Identifier: Apache-2.0
#include "parallel/mesh.h"

namespace howmany {
namespace {

const MeshShape& checked(const MeshShape& shape, int world) {
  HM_REQUIRE(shape.data >= 1 && shape.stage >= 1 && shape.tensor >= 1 && shape.size() == world,
             "[mesh] data {} x stage {} x tensor {} is not a world of {}", shape.data, shape.stage,
             shape.tensor, world);
  return shape;
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
      data_(world.split([&](int rank) {
        const Coordinates at = coordinates_of(shape, rank);
        return std::pair(at.stage * shape.tensor + at.tensor, at.data);
      })),
      stage_(world.split([&](int rank) {
        const Coordinates at = coordinates_of(shape, rank);
        return std::pair(at.data * shape.tensor + at.tensor, at.stage);
      })),
      tensor_(world.split([&](int rank) {
        const Coordinates at = coordinates_of(shape, rank);
        return std::pair(at.stage * shape.data + at.data, at.tensor);
      })) {}

void Mesh::abort(std::string_view why) {
  data_->abort(why);
  stage_->abort(why);
  tensor_->abort(why);
}

}  // namespace howmany
