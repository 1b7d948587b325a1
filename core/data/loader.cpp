#include "core/data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/profile/range.h"
#include "core/rng.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;

// One pass over the data, kept alive by the worker that is still on it when it is abandoned.
struct Epoch {
  std::vector<int64_t> order;
  uint64_t key = 0;  // feeds augmentation
  std::atomic<bool> abandoned = false;
};

std::shared_ptr<Epoch> make_epoch(int64_t size, const LoaderOptions& options, int64_t number) {
  const Rng rng(options.seed, static_cast<uint64_t>(number));
  auto epoch = std::make_shared<Epoch>();
  if (options.shuffle) {
    epoch->order = permutation(size, rng);
  } else {
    epoch->order.resize(static_cast<size_t>(size));
    std::iota(epoch->order.begin(), epoch->order.end(), int64_t{0});
  }
  // The far end of the stream, where the permutation does not draw.
  constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
  epoch->key = uint64_t{rng.bits(kLast)} << 32 | rng.bits(kLast - 1);
  return epoch;
}

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

void check(int64_t size, const LoaderOptions& o) {
  HM_REQUIRE(o.global_batch >= 1, "[loader] global batch {}", o.global_batch);
  HM_REQUIRE(o.workers >= 0 && o.prefetch >= 1, "[loader] {} workers, prefetch {}", o.workers,
             o.prefetch);
  HM_REQUIRE(o.share.count >= 1 && o.share.index >= 0 && o.share.index < o.share.count,
             "[loader] share {} of {}", o.share.index, o.share.count);
  HM_REQUIRE(o.global_batch >= o.share.count,
             "[loader] a global batch of {} has no row for some of {} ranks", o.global_batch,
             o.share.count);
  HM_REQUIRE(count_batches(size, o) >= 1, "[loader] {} samples make no batch of {} for {} ranks{}",
             size, o.global_batch, o.share.count, o.drop_last ? " when the last is dropped" : "");
}

// What became of a batch.
struct Slot {
  std::optional<Batch> batch;
  std::exception_ptr error;
  bool filled() const { return batch.has_value() || error; }
};

class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total) {}
  ~Stopwatch() { total_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

struct Loader::State {
  State(const Dataset& data, const LoaderOptions& given)
      : dataset(data), options(given), spec(data.spec()), size(data.size()) {
    check(size, options);
    batches = count_batches(size, options);
    slots.resize(static_cast<size_t>(options.workers) * static_cast<size_t>(options.prefetch));
    for (int i = 0; i < options.workers; ++i)
      workers.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
  ~State() { replace_epoch(nullptr); }  // so that no thread finishes its batch before it is joined

  void replace_epoch(std::shared_ptr<Epoch> next);
  Batch load(const Epoch& from, int64_t batch) const;
  void work(const std::stop_token& stop);
  Batch take();

  Slot& slot(int64_t batch) { return slots[static_cast<size_t>(batch) % slots.size()]; }

  const Dataset& dataset;
  const LoaderOptions options;
  const SampleSpec spec;
  const int64_t size;
  int64_t batches = 0;
  double waited = 0;  // the consumer's alone

  std::mutex mutex;
  std::condition_variable_any issue, ready;
  std::shared_ptr<Epoch> epoch;
  int64_t issued = 0, delivered = 0;  // batches of this epoch
  std::vector<Slot> slots;            // batch b in slot b % window
  std::vector<std::jthread> workers;  // last, to be joined before the rest goes
};

void Loader::State::replace_epoch(std::shared_ptr<Epoch> next) {
  {
    std::lock_guard lock(mutex);
    if (epoch) epoch->abandoned = true;
    epoch = std::move(next);
    issued = delivered = 0;
    for (Slot& s : slots) s = {};
  }
  issue.notify_all();
}

// Samples are written where they stay. An abandoned batch ends early, unfinished.
Batch Loader::State::load(const Epoch& from, int64_t batch) const {
  const int64_t first = batch * options.global_batch;
  const int64_t global = std::min(options.global_batch, size - first);
  const int64_t begin = options.share.begin(global), rows = options.share.end(global) - begin;
  const Device device = options.device.type == DeviceType::cpu ? options.device : Device{};
  Batch made{Tensor::empty(batch_shape(rows, spec.x), spec.x_dtype, device),
             Tensor::empty(batch_shape(rows, spec.y), spec.y_dtype, device), global, begin};
  const Range range(Category::data, "load batch",
                    static_cast<uint64_t>(made.x.bytes() + made.y.bytes()));
  auto* x = static_cast<std::byte*>(made.x.mutable_raw());
  auto* y = static_cast<std::byte*>(made.y.mutable_raw());
  for (int64_t row = 0; row < rows && !from.abandoned; ++row) {
    dataset.get(from.order[static_cast<size_t>(first + begin + row)], from.key, x, y);
    x += made.x.bytes() / rows;
    y += made.y.bytes() / rows;
  }
  return made;
}

void Loader::State::work(const std::stop_token& stop) {
  const auto window = static_cast<int64_t>(slots.size());
  const auto wanted = [&] { return epoch && issued < std::min(batches, delivered + window); };
  std::unique_lock lock(mutex);
  while (issue.wait(lock, stop, wanted)) {
    const auto mine = epoch;
    const int64_t batch = issued++;
    lock.unlock();
    Slot filled;
    try {
      filled.batch = load(*mine, batch);
    } catch (...) {
      filled.error = std::current_exception();
    }
    lock.lock();
    if (mine->abandoned) continue;
    slot(batch) = std::move(filled);
    ready.notify_one();
  }
}

Batch Loader::State::take() {
  Slot taken;
  {
    std::unique_lock lock(mutex);
    Slot& next = slot(delivered);
    ready.wait(lock, [&] { return next.filled(); });
    taken = std::exchange(next, {});
    ++delivered;
  }
  issue.notify_one();
  if (taken.error) std::rethrow_exception(taken.error);
  return std::move(*taken.batch);
}

Loader::Loader(const Dataset& dataset, LoaderOptions options)
    : state_(std::make_unique<State>(dataset, options)) {}

Loader::~Loader() = default;

int64_t Loader::batches_per_epoch() const { return state_->batches; }

void Loader::start_epoch(int64_t epoch) {
  state_->replace_epoch(make_epoch(state_->size, state_->options, epoch));
}

std::optional<Batch> Loader::next() {
  State& s = *state_;
  HM_REQUIRE(s.epoch != nullptr, "[loader] next() before start_epoch()");
  if (s.delivered == s.batches) return {};
  Range range(Category::data, "data wait");
  Stopwatch stopwatch(s.waited);
  Batch batch = s.workers.empty() ? s.load(*s.epoch, s.delivered++) : s.take();
  batch.x = batch.x.to(s.options.device);
  batch.y = batch.y.to(s.options.device);
  return batch;
}

double Loader::wait_seconds() const { return state_->waited; }

}  // namespace howmany
