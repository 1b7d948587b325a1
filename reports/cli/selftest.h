// SPDX-License-Identifier: Apache-2.0
// `howmany selftest` runs the conformance tests, and those of numerical equivalence with `single`,
// on this machine. It reports the tests that passed, failed or were skipped, with reasons. The
// tests are GoogleTest programs in the folder of `howmany` or, in a bundle, in ../libexec/howmany.
// Call from the main thread.
#pragma once

#include <string>
#include <vector>

namespace howmany::reports {

// X(folder, unit, "meaning of a pass"): the tests of tests/<folder>/<unit>_test.cpp
#define HM_SELFTESTS(X)                                            \
  X(core, ops, "operations refuse what does not fit")              \
  X(core, backend, "kernels agree with the reference")             \
  X(core, onednn, "oneDNN's blocked weights and fusions")          \
  X(core, layer, "gradients agree with central differences")       \
  X(core, optim, "optimizers follow PyTorch's rules")              \
  X(parallel, comm, "collectives are exact on every engine")       \
  X(parallel, grad_sync, "gradient exchange, bucketed and inline") \
  X(parallel, mode, "the law: every mode, engine and world size trains as `single`")

struct SelftestArguments {
  double timeout_seconds = 900;  // of each program
  bool quick = false;            // quick_checks() in place of the tests
  bool json = false, quiet = false;
};

// Returns 0 if all passed, 1 if one failed, 3 if a program is missing, crashed or hung.
int run_selftest(const SelftestArguments& arguments);

struct TestTotals {
  int passed = 0, failed = 0;
  std::vector<std::string> failures;  // "Comm.AllReduceIsExact"
  std::vector<std::string> skipped;   // "Comm.NcclIsExact: no GPU here"
};
// Parses the output of a GoogleTest program. Accepts any text.
TestTotals read_totals(const std::string& printed);

}  // namespace howmany::reports
