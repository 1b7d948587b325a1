// SPDX-License-Identifier: Apache-2.0
// A dataset of your own, and the loop that finds a good number of workers: it times an epoch with
// 0 to 4 of them. `howmany workers` does this with repetitions and intervals.
//
//   PyTorch:  class MyDataset(Dataset): __len__, __getitem__;  DataLoader(..., num_workers=n)
//
// Usage: own_dataset
#include <chrono>
#include <cstdio>
#include <thread>

#include "core/data/loader.h"

using namespace howmany;

class MyDataset : public Dataset {
 public:
  int64_t size() const override { return 256; }  // __len__

  // __getitem__: writes sample `index`. Workers call it concurrently.
  void get(int64_t index, uint64_t /*key*/, void* x, void* y) const override {
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // reads and decodes a file
    for (int i = 0; i < 10; ++i) static_cast<float*>(x)[i] = static_cast<float>(index + i);
    *static_cast<int64_t*>(y) = index % 2;
  }

  SampleSpec spec() const override { return {.x = {10}}; }  // 10 floats, and one i64 label
  std::string describe() const override { return "my dataset"; }
};

int main() {
  const MyDataset dataset;
  for (int workers = 0; workers <= 4; ++workers) {
    Loader loader(dataset, {.global_batch = 32, .workers = workers});
    const auto start = std::chrono::steady_clock::now();
    int64_t samples = 0;
    loader.start_epoch(0);
    while (const auto batch = loader.next()) samples += batch->x.shape()[0];
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    std::printf("num_workers %d: %lld samples, %.0f samples/s\n", workers,
                static_cast<long long>(samples), static_cast<double>(samples) / time.count());
  }
}
