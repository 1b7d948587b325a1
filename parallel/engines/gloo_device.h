// SPDX-License-Identifier: Apache-2.0
// The device of a Gloo context: sockets on one interface and the transport thread that serves them.
// The thread may run on every core of the process. Thread-safe.
//
//   auto device = make_gloo_device("127.0.0.1");
//   context->connectFullMesh(store, device);
#pragma once

#include <gloo/transport/device.h>

#include <memory>
#include <string>

namespace howmany {

// Uses the interface that HOWMANY_IFACE names, else that of `address`. Throws Gloo's exceptions.
std::shared_ptr<::gloo::transport::Device> make_gloo_device(const std::string& address);

}  // namespace howmany
