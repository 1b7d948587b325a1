#include "parallel/comms/gloo_device.h"

#include <gloo/transport/tcp/device.h>
#include <sched.h>

#include <cstdlib>

namespace howmany {
namespace {

// While it lives this thread, and those it starts, wait for their turn on a core instead of taking
// it from who runs there. Where the system refuses, nothing changes.
class Patience {
 public:
  Patience() : before_(sched_getscheduler(0)) {
    if (before_ == SCHED_OTHER) set(SCHED_BATCH);
  }
  ~Patience() {
    if (before_ == SCHED_OTHER) set(SCHED_OTHER);
  }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  static void set(int policy) {
    const sched_param none{};
    (void)sched_setscheduler(0, policy, &none);
  }
  const int before_;
};

}  // namespace

// gloo's thread polls without rest while a rank's thread holds the connection (Pair::handleEvents
// only tries the lock). Were it to preempt that thread in the middle of a send, it would poll until
// the scheduler's next tick: 4 ms at 250 Hz, forty times what a small message takes.
std::shared_ptr<::gloo::transport::Device> make_gloo_device(const std::string& address) {
  ::gloo::transport::tcp::attr attr;
  const char* const interface = std::getenv("HOWMANY_IFACE");
  if (interface != nullptr && *interface != '\0')
    attr.iface = interface;
  else
    attr.hostname = address;
  const Patience patience;
  return ::gloo::transport::tcp::CreateDevice(attr);
}

}  // namespace howmany
