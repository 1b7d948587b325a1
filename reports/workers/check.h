// The script that checks the advice with the real thing: a standard Python program that runs
// torch.utils.data.DataLoader on the same folder at the advised number of workers and beside it,
// and tells its rate over ours. Values only; not tied to any thread.
#pragma once

#include <map>
#include <string>
#include "reports/workers/advise.h"
#include "reports/workers/points.h"

namespace howmany::reports {

struct CheckScript {
  std::string data;  // the folder
  int64_t batch = 64, image_size = 224;
  int prefetch = 2;
  std::map<int, double> rates;  // ours by workers, samples/s; what the script runs
};

// The advised number of workers and its neighbours; those measured with their rate, the others with
// the predicted one. Of one device.
CheckScript check_of(const WorkersFacts& facts, const WorkersAdvice& advice,
                     const std::string& data, int64_t image_size);
std::string check_script(const CheckScript& what);

}  // namespace howmany::reports
