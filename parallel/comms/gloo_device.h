// The device of a gloo context: sockets on one interface, and the thread that moves their data. The
// thread stays on the cores that the caller is bound to. Thread-safe.
//
//   auto device = make_gloo_device("127.0.0.1");
//   context->connectFullMesh(store, device);
#pragma once

#include <gloo/transport/device.h>

#include <memory>
#include <string>

namespace howmany {

// On the interface that HOWMANY_IFACE names, else on that of `address`. Throws what gloo throws.
std::shared_ptr<::gloo::transport::Device> make_gloo_device(const std::string& address);

}  // namespace howmany
