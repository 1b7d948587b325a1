// SPDX-License-Identifier: Apache-2.0
#include "core/data/batch_source.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/data/sampler.h"
#include "core/profile/range.h"
#include "core/tensor/id_range.h"
#include "core/tensor/rng.h"

namespace howmany {
namespace {

constexpr int kMaxWorkers = 1024;
constexpr int64_t kMaxInFlight = 1024;    // batches of worker processes: what their pipes can hold
constexpr int64_t kLabelAlignment = 256;  // of y after x in a block, as kernels require

Shape batch_shape(int64_t rows, const Shape& sample) {
  std::vector<int64_t> extents{rows};
  extents.insert(extents.end(), sample.extents().begin(), sample.extents().end());
  return Shape(extents);
}

int64_t count_batches(int64_t size, const LoaderOptions& options) {
  const int64_t last = size % options.global_batch;
  const bool keeps_last = !options.drop_last && last >= options.share.count;
  return size / options.global_batch + (keeps_last ? 1 : 0);
}

void check_sampler(const Dataset& dataset, const LoaderOptions& o) {
  const SamplerOptions& of = o.sampler->options();
  HM_REQUIRE(of.size == dataset.size(), "[loader] a sampler of {} samples for {} in {}", of.size,
             dataset.size(), dataset.describe());
  HM_REQUIRE(o.share.count == 1, "[loader] a sampler divides the samples: give no share");
  HM_REQUIRE(o.global_batch % of.world == 0,
             "[loader] a global batch of {} is no multiple of the sampler's {} ranks",
             o.global_batch, of.world);
}

// A sampler's rank is the share. All ranks have equally many samples, so batches divide evenly.
LoaderOptions with_share(const Dataset& dataset, LoaderOptions options) {
  if (!options.sampler) return options;
  check_sampler(dataset, options);
  options.share = {options.sampler->options().rank, options.sampler->options().world};
  return options;
}

// Returns the samples that all ranks train on in an epoch.
int64_t samples_of(const Dataset& dataset, const LoaderOptions& options) {
  if (!options.sampler) return dataset.size();
  return options.sampler->size() * options.sampler->options().world;
}

std::vector<int64_t> order_of(int64_t size, const LoaderOptions& options, int64_t epoch) {
  if (!options.sampler) return epoch_order(size, options.shuffle, options.seed, epoch);
  DistributedSampler sampler = *options.sampler;
  sampler.set_epoch(epoch);
  return sampler.indices();
}

void check_loader_options(const Dataset& dataset, const LoaderOptions& o) {
  const int64_t size = samples_of(dataset, o);
  HM_REQUIRE(o.global_batch >= 1, "[loader] global batch {}", o.global_batch);
  HM_REQUIRE(o.workers >= 0 && o.prefetch >= 1, "[loader] {} workers, prefetch {}", o.workers,
             o.prefetch);
  HM_REQUIRE(o.workers <= kMaxWorkers, "[loader] {} workers, at most {}", o.workers, kMaxWorkers);
  HM_REQUIRE(o.in_order || o.share.count == 1,
             "[loader] batches in any order are for one loader: {} ranks would differ",
             o.share.count);
  HM_REQUIRE(o.timeout_seconds >= 0, "[loader] timeout {} s", o.timeout_seconds);
  HM_REQUIRE(o.as == WorkersAs::threads || int64_t{o.workers} * o.prefetch <= kMaxInFlight,
             "[loader] {} batches ahead for each of {} processes: more than {} in all", o.prefetch,
             o.workers, kMaxInFlight);
  HM_REQUIRE(o.share.count >= 1 && o.share.index >= 0 && o.share.index < o.share.count,
             "[loader] share {} of {}", o.share.index, o.share.count);
  HM_REQUIRE(o.global_batch >= o.share.count,
             "[loader] a global batch of {} has no row for some of {} ranks", o.global_batch,
             o.share.count);
  HM_REQUIRE(count_batches(size, o) >= 1, "[loader] {} samples make no batch of {} for {} ranks{}",
             size, o.global_batch, o.share.count, o.drop_last ? " when the last is dropped" : "");
}

class ByCaller final : public BatchSource {
 public:
  explicit ByCaller(const BatchMaker& maker) : maker_(maker) {}
  void start(int64_t epoch) override { epoch_ = maker_.epoch(epoch); }
  Batch take(int64_t batch) override {
    return maker_.make(epoch_, batch, at_, [] { return false; });
  }

 private:
  const BatchMaker& maker_;
  Epoch epoch_;
  std::atomic<int64_t> at_ = -1;
};

// Requests huge pages if the kernel leaves that to programs. They cause fewer TLB misses, and make
// the speed of a loader depend less on the placement of its memory.
Tensor on_huge_pages(Tensor t) {
  constexpr uintptr_t kPage = uintptr_t{2} << 20;
  const auto at = reinterpret_cast<uintptr_t>(t.raw());
  const uintptr_t begin = (at + kPage - 1) / kPage * kPage;
  const uintptr_t end = (at + static_cast<uintptr_t>(t.bytes())) / kPage * kPage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  return t;
}

}  // namespace

BatchMaker::BatchMaker(const Dataset& dataset, const LoaderOptions& options)
    : dataset_(dataset),
      options_(with_share(dataset, options)),
      spec_(dataset.spec()),
      size_(samples_of(dataset, options_)) {
  check_loader_options(dataset, options_);
  batches_ = count_batches(size_, options_);
  x_bytes_ = spec_.x.numel() * static_cast<int64_t>(size_of(spec_.x_dtype));
  y_bytes_ = spec_.y.numel() * static_cast<int64_t>(size_of(spec_.y_dtype));
  if (options.device.type == DeviceType::cuda)
    pinned_ = Blocks::pinned(options.device.index, block_bytes());
}

Epoch BatchMaker::epoch(int64_t number) const {
  const Rng rng(options_.seed, static_cast<uint64_t>(number));
  Epoch epoch;
  epoch.order = order_of(size_, options_, number);
  // Draws from the end of the random stream, which the permutation does not use.
  constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
  epoch.key = uint64_t{rng.bits(kLast)} << 32 | rng.bits(kLast - 1);
  return epoch;
}

int64_t BatchMaker::global_rows(int64_t batch) const {
  return std::min(options_.global_batch, size_ - batch * options_.global_batch);
}

int64_t BatchMaker::first_row(int64_t batch) const {
  return options_.share.begin(global_rows(batch));
}

// The order of a sampler holds only this rank's samples.
int64_t BatchMaker::first_place(int64_t batch) const {
  if (options_.sampler) return batch * (options_.global_batch / options_.share.count);
  return batch * options_.global_batch + first_row(batch);
}

int64_t BatchMaker::rows(int64_t batch) const {
  return options_.share.end(global_rows(batch)) - first_row(batch);
}

Device BatchMaker::device() const {
  return options_.device.type == DeviceType::cpu ? options_.device : Device{};
}

int64_t BatchMaker::y_in_block() const {
  return (rows(0) * x_bytes_ + kLabelAlignment - 1) / kLabelAlignment * kLabelAlignment;
}

int64_t BatchMaker::block_bytes() const { return y_in_block() + rows(0) * y_bytes_; }

Batch BatchMaker::in(int64_t batch, std::shared_ptr<void> block, Device device) const {
  std::shared_ptr<void> y(block, static_cast<std::byte*>(block.get()) + y_in_block());
  return {Tensor::over(std::move(block), batch_shape(rows(batch), spec_.x), spec_.x_dtype, device),
          Tensor::over(std::move(y), batch_shape(rows(batch), spec_.y), spec_.y_dtype, device),
          global_rows(batch), first_row(batch), batch};
}

Batch BatchMaker::empty(int64_t batch) const {
  if (pinned_) return in(batch, pinned_->take(), device());
  return {on_huge_pages(Tensor::empty(batch_shape(rows(batch), spec_.x), spec_.x_dtype, device())),
          Tensor::empty(batch_shape(rows(batch), spec_.y), spec_.y_dtype, device()),
          global_rows(batch), first_row(batch), batch};
}

Batch BatchMaker::over(int64_t batch, std::shared_ptr<void> x, std::shared_ptr<void> y) const {
  return {Tensor::over(std::move(x), batch_shape(rows(batch), spec_.x), spec_.x_dtype, device()),
          Tensor::over(std::move(y), batch_shape(rows(batch), spec_.y), spec_.y_dtype, device()),
          global_rows(batch), first_row(batch), batch};
}

Batch BatchMaker::copy_of(int64_t batch, const void* x, const void* y) const {
  Batch made = empty(batch);
  std::memcpy(made.x.mutable_raw(), x, static_cast<size_t>(made.x.bytes()));
  std::memcpy(made.y.mutable_raw(), y, static_cast<size_t>(made.y.bytes()));
  return made;
}

Batch BatchMaker::make(const Epoch& epoch, int64_t batch, std::atomic<int64_t>& at,
                       const std::function<bool()>& abandoned) const {
  Batch made = empty(batch);
  fill(epoch, batch, static_cast<std::byte*>(made.x.mutable_raw()),
       static_cast<std::byte*>(made.y.mutable_raw()), at, abandoned);
  return made;
}

bool BatchMaker::fill(const Epoch& epoch, int64_t batch, std::byte* x, std::byte* y,
                      std::atomic<int64_t>& at, const std::function<bool()>& abandoned) const {
  const int64_t first = first_place(batch), count = rows(batch);
  const Range range(Category::data, "load batch",
                    static_cast<uint64_t>(count * (x_bytes_ + y_bytes_)));
  for (int64_t row = 0; row < count; ++row, x += x_bytes_, y += y_bytes_) {
    if (abandoned()) return false;
    const int64_t sample = epoch.order[static_cast<size_t>(first + row)];
    at.store(sample, std::memory_order_relaxed);
    try {
      dataset_.get(sample, epoch.key, x, y);
    } catch (const Error& error) {
      const std::string name = name_of(sample), text = error.what();
      if (text.find(name) != std::string::npos) throw;
      throw Error(fmt::format("{} ({})", text, name));
    }
  }
  at.store(-1, std::memory_order_relaxed);
  return true;
}

std::string BatchMaker::name_of(int64_t sample) const {
  return sample < 0 ? "no sample" : dataset_.name_of(sample);
}

void BatchMaker::init_worker(int index) const {
  if (!options_.worker_init) return;
  const uint64_t base = Rng(options_.seed, stream_of("loader.worker")).bits(0);
  try {
    options_.worker_init({index, options_.workers, base + static_cast<uint64_t>(index)});
  } catch (const std::exception& error) {
    throw Error(fmt::format("[loader] worker {} cannot start: {}", index, error.what()));
  }
}

std::unique_ptr<BatchSource> batches_by_caller(const BatchMaker& maker) {
  return std::make_unique<ByCaller>(maker);
}

}  // namespace howmany
