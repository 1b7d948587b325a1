// SPDX-License-Identifier: Apache-2.0
// The sources of a Loader's batches: the calling thread, threads or processes. All workers share
// one const BatchMaker. A BatchSource serves one consumer. Private to core/data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/data/loader.h"
#include "core/gpu/blocks.h"

namespace howmany {

// One pass over the data.
struct Epoch {
  std::vector<int64_t> order;
  uint64_t key = 0;  // seeds augmentation
};

// Makes batches from samples. Independent of the kind of worker.
class BatchMaker {
 public:
  // Throws std::invalid_argument if an option is invalid or an epoch would have no batch.
  BatchMaker(const Dataset& dataset, const LoaderOptions& options);

  const LoaderOptions& options() const { return options_; }
  int64_t batches() const { return batches_; }
  Epoch epoch(int64_t number) const;
  // Returns memory for this share's rows of a batch, uninitialized.
  Batch empty(int64_t batch) const;
  // These return this share's rows over existing memory, as a copy of it, and in a block of
  // block_bytes() that holds x and then y.
  Batch over(int64_t batch, std::shared_ptr<void> x, std::shared_ptr<void> y) const;
  Batch copy_of(int64_t batch, const void* x, const void* y) const;
  Batch in(int64_t batch, std::shared_ptr<void> block, Device device) const;
  int64_t block_bytes() const;
  int64_t rows(int64_t batch) const;
  int64_t x_bytes() const { return x_bytes_; }  // per sample
  int64_t y_bytes() const { return y_bytes_; }

  // Returns this share's rows of a batch, filled. Else as fill().
  Batch make(const Epoch& epoch, int64_t batch, std::atomic<int64_t>& at,
             const std::function<bool()>& abandoned) const;
  // Writes the samples to x and y. Sets `at` to the current sample. Returns false if abandoned()
  // became true meanwhile. Throws the dataset's exceptions, as an Error with the name of the
  // sample.
  bool fill(const Epoch& epoch, int64_t batch, std::byte* x, std::byte* y, std::atomic<int64_t>& at,
            const std::function<bool()>& abandoned) const;
  std::string name_of(int64_t sample) const;
  // Calls worker_init. On failure throws Error with the worker and the reason.
  void init_worker(int index) const;

 private:
  int64_t first_row(int64_t batch) const;
  int64_t first_place(int64_t batch) const;  // of this share's rows in Epoch::order
  int64_t global_rows(int64_t batch) const;
  int64_t y_in_block() const;
  Device device() const;  // on which batches are made; batches_to_gpu() copies them later

  const Dataset& dataset_;
  const LoaderOptions options_;
  const SampleSpec spec_;
  const int64_t size_;
  int64_t batches_ = 0, x_bytes_ = 0, y_bytes_ = 0;
  std::shared_ptr<Blocks> pinned_;  // sources of copies to a GPU
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual void start(int64_t epoch) = 0;  // abandons the rest of the previous epoch
  // Returns that batch of the epoch; call it once per batch, in order. If in_order is false,
  // returns any batch that has not been taken.
  virtual Batch take(int64_t batch) = 0;
};

std::unique_ptr<BatchSource> batches_by_caller(const BatchMaker& maker);
std::unique_ptr<BatchSource> batches_by_threads(const BatchMaker& maker);
std::unique_ptr<BatchSource> batches_by_processes(const BatchMaker& maker);
// Copies the batches of `source` to the maker's GPU.
std::unique_ptr<BatchSource> batches_to_gpu(const BatchMaker& maker,
                                            std::unique_ptr<BatchSource> source);

}  // namespace howmany
