#include "parallel/engine.h"

#include <fmt/ranges.h>

#include <numeric>
#include <thread>

#include "core/gpu/gpu.h"
#include "parallel/shuttle.h"

namespace howmany {
namespace {

bool is_gpu(Device device) { return device.type == DeviceType::cuda; }

// Asking for memory and copying may wait for the device, which may wait for what is in flight, for
// ever if nobody looks at that.
void make_way(CommEngine& engine) {
  if (is_gpu(engine.home())) engine.finish();
}

// The device was asked for the copy, or for its room, after the call was.
Tensor marked(CommEngine& engine, Tensor t) {
  if (is_gpu(engine.home())) engine.set_mark(gpu::mark(engine.home().index));
  return t;
}

}  // namespace

Roster Roster::of(const std::vector<int>& members) const {
  Roster some{.world = world, .ranks = {}};
  for (const int r : members) {
    some.ranks.push_back(ranks[static_cast<size_t>(r)]);
    if (!hosts.empty()) some.hosts.push_back(host_of(r));
  }
  return some;
}

CallFailure::CallFailure(const CommEngine& engine, std::string_view what, std::vector<int> peers,
                         double elapsed_seconds, std::string_view reason)
    : operation(what),
      backend(engine.name()),
      rank(engine.roster().ranks[static_cast<size_t>(engine.rank())]),
      size(engine.roster().world),
      elapsed(elapsed_seconds),
      why(reason) {
  if (peers.empty()) return;
  host = engine.roster().host_of(peers[0]);
  for (int& p : peers) p = engine.roster().ranks[static_cast<size_t>(p)];
  peer = peers[0];
  peers.erase(peers.begin());
  if (!peers.empty()) why = fmt::format("and others ({}) {}", fmt::join(peers, ", "), why);
}

CommError CommEngine::error_of_call(const EngineError& e) const {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  return CallFailure(*this, operation_, e.peers(), elapsed.count(), e.what()).error();
}

CommEngine::CommEngine(int rank, int size) : rank_(rank), size_(size) {
  roster_ = {.world = size, .ranks = std::vector<int>(static_cast<size_t>(size))};
  std::iota(roster_.ranks.begin(), roster_.ranks.end(), 0);
}

CommEngine::~CommEngine() = default;

Shuttle& CommEngine::shuttle(int gpu) {
  if (shuttle_ == nullptr || shuttle_->gpu() != gpu) shuttle_ = std::make_unique<Shuttle>(gpu);
  return *shuttle_;
}

void CommEngine::finish() {
  if (look() >= asked()) return;
  const auto start = std::chrono::steady_clock::now();
  while (look() < asked()) rest(start);
}

void rest(std::chrono::steady_clock::time_point start) {
  constexpr std::chrono::microseconds kBusy(1000), kNap(20);
  if (std::chrono::steady_clock::now() - start < kBusy)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(kNap);
}

bool is_home(const CommEngine& engine, const Tensor& t) {
  const Device home = engine.home();
  return is_gpu(home) ? t.device() == home : !is_gpu(t.device());
}

bool is_own_part(const Tensor& part, const Tensor& whole, int rank) {
  return part.raw() == static_cast<const char*>(whole.raw()) + rank * part.bytes();
}

Guest::Guest(const CommEngine& engine, Tensor tensor) : t(std::move(tensor)) {
  if (t && is_gpu(t.device()) && !is_gpu(engine.home())) mark = gpu::mark(t.device().index);
}

Tensor at_home(CommEngine& engine, const Guest& guest) {
  if (is_home(engine, guest.t)) return guest.t;
  if (guest.mark) return engine.shuttle(guest.t.device().index).to_host(guest.t, guest.mark);
  make_way(engine);
  return marked(engine, guest.t.to(engine.home()));
}

Tensor room_for(CommEngine& engine, const Guest& guest) {
  const Tensor& t = guest.t;
  if (guest.mark) return engine.shuttle(t.device().index).room(t.shape(), t.dtype());
  make_way(engine);
  return marked(engine, Tensor::empty(t.shape(), t.dtype(), engine.home()));
}

void bring_back(CommEngine& engine, const Tensor& there, Guest& guest) {
  if (guest.mark) return engine.shuttle(guest.t.device().index).to_gpu(there, guest.t, guest.mark);
  engine.finish();
  guest.t.copy_from(there);
}

}  // namespace howmany
