// SPDX-License-Identifier: Apache-2.0
// A Mesh arranges the world as data x stage x tensor and has a Comm along each axis.
//
// Groups. The ranks that differ only in one coordinate form a group of that axis.
// Order. rank = (stage * data size + data) * tensor size + tensor. The axis that communicates most
//   is innermost, so that its ranks are neighbours on a node. Stages communicate least.
// Thread safety. As Comm. Construction is collective over the world.
//
//   Mesh mesh(world, {.data = 2, .stage = 4});
//   mesh.data().all_reduce(grad);   // over the replicas of this rank's stage
#pragma once

#include <memory>

#include "parallel/comm/comm.h"

namespace howmany {

struct MeshShape {
  int data = 1, stage = 1, tensor = 1;
  int size() const { return data * stage * tensor; }
};

struct Coordinates {
  int data = 0, stage = 0, tensor = 0;
  bool operator==(const Coordinates&) const = default;
};
Coordinates coordinates_of(const MeshShape& shape, int rank);
int rank_of(const MeshShape& shape, const Coordinates& at);

class Mesh {
 public:
  // Throws std::invalid_argument on every rank if shape.size() is not the size of the world.
  Mesh(Comm& world, const MeshShape& shape);

  const MeshShape& shape() const { return shape_; }
  const Coordinates& at() const { return at_; }
  // The rank in the group is the coordinate along its axis.
  Comm& data() { return *data_; }
  Comm& stage() { return *stage_; }
  Comm& tensor() { return *tensor_; }
  void abort(std::string_view why);  // aborts the Comm of each axis

 private:
  MeshShape shape_;
  Coordinates at_;
  std::unique_ptr<Comm> data_, stage_, tensor_;
};

}  // namespace howmany
