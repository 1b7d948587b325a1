// The world as a box of data x stage x tensor, and a Comm along each axis. Ranks that differ in
// one coordinate only form the group of that axis. Rank = (stage * data + data index) * tensor +
// tensor index: the axis that sends most is innermost, so that its ranks are neighbours on a node,
// and stages, which send least, are furthest apart. Tensor is 1 for now. Construction is collective
// over the world; the thread rules are those of Comm.
//
//   Mesh mesh(world, {.data = 2, .stage = 4});
//   mesh.data().all_reduce(grad);   // over the replicas of this rank's stage
#pragma once

#include <memory>

#include "parallel/comm.h"

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
  // Throws std::invalid_argument on every rank when the shape is not the world's size.
  Mesh(Comm& world, const MeshShape& shape);

  const MeshShape& shape() const { return shape_; }
  const Coordinates& at() const { return at_; }
  // Ranks in the group are the coordinate along its axis.
  Comm& data() { return *data_; }
  Comm& stage() { return *stage_; }
  void abort(std::string_view why);  // of every axis; see Comm

 private:
  MeshShape shape_;
  Coordinates at_;
  std::unique_ptr<Comm> data_, stage_;
};

}  // namespace howmany
