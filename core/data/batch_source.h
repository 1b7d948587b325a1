// How a Loader gets its batches: made in the caller, by threads or by processes. Private to
// core/data. A BatchMaker is const and used by every worker; a BatchSource serves one consumer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/data/images/decoders.h"
#include "core/data/loader.h"
#include "core/gpu/blocks.h"

namespace howmany {

// One pass over the data.
struct Epoch {
  std::vector<int64_t> order;
  uint64_t key = 0;  // feeds augmentation
};

// What a batch consists of, whoever makes it.
class BatchMaker {
 public:
  // Throws std::invalid_argument for nonsense options and when an epoch would have no batch.
  BatchMaker(const Dataset& dataset, const LoaderOptions& options);

  const LoaderOptions& options() const { return options_; }
  int64_t batches() const { return batches_; }
  Epoch epoch(int64_t number) const;
  // This share's rows of a batch: memory for them, not yet filled.
  Batch empty(int64_t batch) const;
  // The same over memory that somebody else filled, and a copy of such memory; in a block of
  // block_bytes(), where y follows x.
  Batch over(int64_t batch, std::shared_ptr<void> x, std::shared_ptr<void> y) const;
  Batch copy_of(int64_t batch, const void* x, const void* y) const;
  Batch in(int64_t batch, std::shared_ptr<void> block, Device device) const;
  int64_t block_bytes() const;
  int64_t rows(int64_t batch) const;
  int64_t x_bytes() const { return x_bytes_; }  // of a sample
  int64_t y_bytes() const { return y_bytes_; }

  // This share's rows of a batch, made; on the GPU where that decodes. Else as fill().
  Batch make(const Epoch& epoch, int64_t batch, std::atomic<int64_t>& at,
             const std::function<bool()>& abandoned) const;
  // Writes the samples where they stay, x by the decoder if there is one; false when abandoned()
  // became true on the way. `at` is the sample that is being made. Throws what the dataset throws,
  // an Error with the sample's name.
  bool fill(const Epoch& epoch, int64_t batch, std::byte* x, std::byte* y, std::atomic<int64_t>& at,
            const std::function<bool()>& abandoned, gpu::ImageDecoder* decoder = nullptr) const;
  std::string name_of(int64_t sample) const;
  // Calls worker_init; throws Error with the worker and the reason.
  void init_worker(int index) const;

 private:
  int64_t first_row(int64_t batch) const;
  int64_t global_rows(int64_t batch) const;
  int64_t y_in_block() const;
  Batch decoded(const Epoch& epoch, int64_t batch, std::atomic<int64_t>& at,
                const std::function<bool()>& abandoned) const;
  Device device() const;  // of the batches as they are made: a GPU gets them afterwards

  const Dataset& dataset_;
  const LoaderOptions options_;
  const SampleSpec spec_;
  const int64_t size_;
  int64_t batches_ = 0, x_bytes_ = 0, y_bytes_ = 0;
  std::shared_ptr<Blocks> pinned_;      // where copies to a GPU begin
  std::shared_ptr<Blocks> on_gpu_;      // where it decodes
  std::shared_ptr<Decoders> decoders_;  // which
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual void start(int64_t epoch) = 0;  // abandons what was left of the one before
  // Each of an epoch once, in order; or any that has not been taken, when order does not matter.
  virtual Batch take(int64_t batch) = 0;
};

std::unique_ptr<BatchSource> batches_by_caller(const BatchMaker& maker);
std::unique_ptr<BatchSource> batches_by_threads(const BatchMaker& maker);
std::unique_ptr<BatchSource> batches_by_processes(const BatchMaker& maker);
std::unique_ptr<BatchSource> batches_as_pytorch(const BatchMaker& maker);
// What `source` makes, on the maker's GPU.
std::unique_ptr<BatchSource> batches_to_gpu(const BatchMaker& maker,
                                            std::unique_ptr<BatchSource> source);

}  // namespace howmany
