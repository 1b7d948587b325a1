// torch.distributed compared with howmany over the same library, from measured all_reduces. Values
// only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/comm/advise.h"

namespace howmany::reports {

// One for each backend that the all_reduce contest of the most ranks has both with torch's prefix
// and without it, at a common size.
std::vector<TorchGap> torch_gaps(const std::vector<Contest>& contests);

// A difference above 10 % in the geometric mean.
bool differs(const TorchGap& gap);
// One sentence.
std::string words_of(const TorchGap& gap);

}  // namespace howmany::reports
