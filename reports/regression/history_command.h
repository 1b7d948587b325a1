// SPDX-License-Identifier: Apache-2.0
// The command `howmany history`: finds since when a benchmark is slower. One thread.
#pragma once

#include <string>

namespace howmany::reports {

struct HistoryArguments {
  std::string source;  // a folder or file of JSON Lines, or git:BRANCH
  std::string min_effect;
  bool json = false, quiet = false;
};
int run_history(const HistoryArguments& arguments);

}  // namespace howmany::reports
