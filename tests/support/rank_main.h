// SPDX-License-Identifier: Apache-2.0
// The main() of a test program that also runs as the ranks it starts. As a rank it calls `run_rank`
// with its arguments. If that throws, it prints one line and exits with 98.
#pragma once

#include <gmock/gmock.h>

#include <exception>
#include <iostream>

#include "parallel/launch/rank_supervisor.h"

namespace howmany::testing_support {

template <typename RunRank>
int rank_main(int argc, char** argv, RunRank run_rank) {
  supervise_rank();
  if (argc == 1 || argv[1][0] == '-') {
    testing::InitGoogleMock(&argc, argv);
    return RUN_ALL_TESTS();
  }
  try {
    return run_rank(argv + 1);
  } catch (const std::exception& e) {
    std::cerr << e.what() << std::endl;
    return 98;
  }
}

}  // namespace howmany::testing_support
