#include "parallel/comms/gloo_device.h"

#include <gloo/transport/tcp/device.h>

#include <cstdlib>

namespace howmany {
std::shared_ptr<::gloo::transport::Device> make_gloo_device(const std::string& address) {
  ::gloo::transport::tcp::attr attr;
  const char* const interface = std::getenv("HOWMANY_IFACE");
  if (interface != nullptr && *interface != '\0')
    attr.iface = interface;
  else
    attr.hostname = address;
  return ::gloo::transport::tcp::CreateDevice(attr);
}

}  // namespace howmany
