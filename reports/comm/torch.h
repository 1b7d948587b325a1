// SPDX-License-Identifier: Apache-2.0
// Compares torch.distributed with howmany over the same library, from measured all_reduces. Values
// only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/comm/advise.h"

namespace howmany::reports {

// Returns one gap for each backend that was measured with and without torch's prefix at a common
// size, in the all_reduce operation of the most ranks.
std::vector<TorchGap> torch_gaps(const std::vector<OperationResults>& operations);

// True if the geometric means differ by more than 10 %.
bool differs(const TorchGap& gap);
// Returns one sentence.
std::string words_of(const TorchGap& gap);

}  // namespace howmany::reports
