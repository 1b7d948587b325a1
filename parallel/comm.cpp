#include "parallel/comm.h"

#include <algorithm>
#include <utility>

#include "core/base/text/names.h"
#include "core/gpu/gpu.h"
#include "parallel/call_runner.h"
#include "parallel/comm_list.h"

namespace howmany {

CommError::CommError(std::string_view operation, int rank, int size, std::string_view backend,
                     int peer, std::string_view host, double elapsed_seconds, std::string_view why)
    : Error(fmt::format("[{}] rank {} of {} ({}): {}{}{} after {:.1f} s", operation, rank, size,
                        backend, peer >= 0 ? fmt::format("peer {} ", peer) : "",
                        host.empty() ? "" : fmt::format("on {} ", host), why, elapsed_seconds)),
      rank_(rank),
      peer_(peer) {}

Comm::Comm(std::unique_ptr<CommEngine> engine)
    : engine_(std::move(engine)),
      rank_(engine_->rank()),
      size_(engine_->size()),
      calls_(std::make_unique<CallRunner>(*engine_)) {}

Comm::~Comm() = default;

std::string_view Comm::backend() const { return engine_->name(); }
std::map<std::string, std::string> Comm::details() const { return engine_->details(); }
Device Comm::native_device() const { return engine_->native_device(); }
void Comm::set_timeout(std::chrono::milliseconds timeout) { calls_->set_timeout(timeout); }
std::chrono::milliseconds Comm::timeout() const { return calls_->timeout(); }
void Comm::finish() { calls_->finish(); }
void Comm::abort(std::string_view why) { calls_->abort(why); }
bool Comm::failed() const { return calls_->failed(); }

std::vector<std::string_view> comm_names() {
  return {
#define X(name, what, ...) #name,
      HM_COMMS(X)
#undef X
  };
}

CommTraits comm_traits(std::string_view name) {
#define X(known, what, ...) \
  if (name == #known) return __VA_ARGS__;
  HM_COMMS(X)
#undef X
  throw std::invalid_argument(unknown_name("backend", name, comm_names()));
}

std::string comm_unavailable(std::string_view name, const Place& place) {
  const CommTraits traits = comm_traits(name);
  return traits.unavailable == nullptr ? "" : traits.unavailable(place);
}

std::vector<std::string_view> thread_comm_names(int ranks) {
  std::vector<std::string_view> names = comm_names();
  std::erase_if(names, [&](std::string_view name) {
    const CommTraits traits = comm_traits(name);
    return !traits.threads || (traits.gpus && ranks > gpu::count());
  });
  return names;
}

}  // namespace howmany
