// What core_bench times: single operations with the shapes of real models, and whole training
// steps. Making a case runs it once and checks the result; a wrong one throws Error.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace howmany::benches {

struct CoreCase {
  std::string name;  // "conv2d/64-64x56x56-3x3/batch:32/forward"
  double flop = 0;   // multiply and add count as two; 0: bound by memory
  double bytes = 0;  // each input read once, each output written once; 0: bound by arithmetic
  double samples = 0, parameters = 0;  // of a training step; else 0
  // Inputs are made and checked here; what it returns is timed.
  std::function<std::function<void()>()> make{};
};

std::vector<CoreCase> operation_cases();
std::vector<CoreCase> step_cases();

}  // namespace howmany::benches
