// SPDX-License-Identifier: Apache-2.0
#include "core/data/loader.h"

#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "core/data/batch_source.h"
#include "core/profile/range.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;

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

std::unique_ptr<BatchSource> make_host_source(const BatchMaker& maker) {
  if (maker.options().workers == 0) return batches_by_caller(maker);
  switch (maker.options().as) {
    case WorkersAs::threads:
      return batches_by_threads(maker);
    case WorkersAs::processes:
      return batches_by_processes(maker);
  }
  throw std::invalid_argument("[loader] workers of no kind");
}

std::unique_ptr<BatchSource> make_source(const BatchMaker& maker) {
  auto source = make_host_source(maker);
  if (maker.options().device.type == DeviceType::cpu) return source;
  return batches_to_gpu(maker, std::move(source));
}

}  // namespace

struct Loader::State {
  State(const Dataset& dataset, const LoaderOptions& options)
      : maker(dataset, options), source(make_source(maker)) {}

  void end_of_epoch() {
    if (!maker.options().persistent_workers) source.reset();
  }

  const BatchMaker maker;
  std::unique_ptr<BatchSource> source;  // null between epochs if workers do not persist
  bool started = false;
  int64_t taken = 0;  // batches of this epoch
  double waited = 0;
};

Loader::Loader(const Dataset& dataset, LoaderOptions options)
    : state_(std::make_unique<State>(dataset, options)) {}

Loader::~Loader() = default;

int64_t Loader::batches_per_epoch() const { return state_->maker.batches(); }

void Loader::start_epoch(int64_t epoch) {
  if (state_->started) state_->end_of_epoch();
  if (!state_->source) state_->source = make_source(state_->maker);
  state_->source->start(epoch);
  state_->started = true;
  state_->taken = 0;
}

std::optional<Batch> Loader::next() {
  State& s = *state_;
  HM_REQUIRE(s.started, "[loader] next() before start_epoch()");
  if (s.taken == s.maker.batches()) {
    s.end_of_epoch();
    return {};
  }
  Range range(Category::data, "data wait");
  Stopwatch stopwatch(s.waited);
  return s.source->take(s.taken++);
}

double Loader::wait_seconds() const { return state_->waited; }

}  // namespace howmany
