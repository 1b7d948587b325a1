// SPDX-License-Identifier: Apache-2.0
#include "parallel/engines/gloo_device.h"

#include <gloo/transport/tcp/device.h>

#include <cstdlib>

#include "core/tensor/device.h"

namespace howmany {

std::shared_ptr<::gloo::transport::Device> make_gloo_device(const std::string& address) {
  ::gloo::transport::tcp::attr attr;
  const char* const interface = std::getenv("HOWMANY_IFACE");
  if (interface != nullptr && *interface != '\0')
    attr.iface = interface;
  else
    attr.hostname = address;
  // The transport thread is not bound, as under torchrun. On a rank's own core it would take whole
  // time slices from the rank: it polls without blocking while the rank holds a connection's lock.
  const UnboundScope unbound;
  return ::gloo::transport::tcp::CreateDevice(attr);
}

}  // namespace howmany
