// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/engine.h"

#include <numeric>
#include <thread>

#include "parallel/comm/staging.h"

namespace howmany {
CommError CommEngine::error_of_call(const EngineError& e) const {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  return CallFailure(*this, operation_, e.peers(), elapsed.count(), e.what()).error();
}

CommEngine::CommEngine(int rank, int size) : rank_(rank), size_(size) {
  roster_ = {.world = size, .ranks = std::vector<int>(static_cast<size_t>(size))};
  std::iota(roster_.ranks.begin(), roster_.ranks.end(), 0);
}

CommEngine::~CommEngine() = default;

HostStaging& CommEngine::host_staging(int gpu) {
  if (host_staging_ == nullptr || host_staging_->gpu() != gpu)
    host_staging_ = std::make_unique<HostStaging>(gpu);
  return *host_staging_;
}

void CommEngine::finish() {
  if (poll() >= submitted()) return;
  const auto start = std::chrono::steady_clock::now();
  while (poll() < submitted()) pause_between_polls(start);
}

void pause_between_polls(std::chrono::steady_clock::time_point start) {
  constexpr std::chrono::microseconds kYield(1000), kSleep(20);
  if (std::chrono::steady_clock::now() - start < kYield)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(kSleep);
}

bool is_own_part(const Tensor& part, const Tensor& whole, int rank) {
  return part.raw() == static_cast<const char*>(whole.raw()) + rank * part.bytes();
}

}  // namespace howmany
