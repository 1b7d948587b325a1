// SPDX-License-Identifier: Apache-2.0
#include "parallel/modes/mesh.h"

#include <gtest/gtest.h>

#include "parallel/launch/launch.h"

namespace howmany {
namespace {

TEST(Mesh, CoordinatesAndRanksAreOneToOne) {
  const MeshShape shape{.data = 3, .stage = 2, .tensor = 4};
  for (int rank = 0; rank < shape.size(); ++rank)
    EXPECT_EQ(rank_of(shape, coordinates_of(shape, rank)), rank);
  EXPECT_EQ(coordinates_of(shape, 5), (Coordinates{.data = 1, .stage = 0, .tensor = 1}));
  EXPECT_EQ(coordinates_of(shape, 12), (Coordinates{.data = 0, .stage = 1, .tensor = 0}));
}

double sum_over(Comm& comm, double mine) {
  Tensor t = Tensor::from<double>({mine}, {1});
  comm.all_reduce(t);
  return t.item();
}

TEST(Mesh, AnAxisIsTheRanksThatDifferInItAlone) {
  for (const std::string_view backend : thread_comm_names(6))
    launch_threads(
        6,
        [](Comm& world) {
          Mesh mesh(world, {.data = 2, .stage = 3});
          EXPECT_EQ(mesh.at(), coordinates_of(mesh.shape(), world.rank()));
          EXPECT_EQ(mesh.data().rank(), mesh.at().data);
          EXPECT_EQ(mesh.stage().rank(), mesh.at().stage);
          // The expected sum of the ranks of each group: stage s has ranks 2s and 2s + 1.
          EXPECT_EQ(sum_over(mesh.data(), world.rank()), 4 * mesh.at().stage + 1);
          EXPECT_EQ(sum_over(mesh.stage(), world.rank()), 6 + 3 * mesh.at().data);
        },
        backend);
}

TEST(Mesh, TheTensorAxisIsInnermost) {
  launch_threads(8, [](Comm& world) {
    Mesh mesh(world, {.data = 2, .stage = 2, .tensor = 2});
    const Coordinates at = mesh.at();
    EXPECT_EQ(mesh.tensor().rank(), world.rank() % 2);
    EXPECT_EQ(sum_over(mesh.tensor(), world.rank()), 2 * (world.rank() - at.tensor) + 1);
    EXPECT_EQ(sum_over(mesh.data(), world.rank()), 2 * (world.rank() - 2 * at.data) + 2);
    EXPECT_EQ(sum_over(mesh.stage(), world.rank()), 2 * (world.rank() - 4 * at.stage) + 4);
  });
}

TEST(Mesh, RefusesAShapeThatIsNotTheWorld) {
  launch_threads(4, [](Comm& world) {
    EXPECT_THROW(Mesh(world, {.data = 3}), std::invalid_argument);
    EXPECT_THROW(Mesh(world, {.data = 2, .tensor = 3}), std::invalid_argument);
    EXPECT_THROW(Mesh(world, {.data = -2, .stage = -2}), std::invalid_argument);
  });
}

}  // namespace
}  // namespace howmany
