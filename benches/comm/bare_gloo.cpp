// SPDX-License-Identifier: Apache-2.0
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <filesystem>

#include "benches/comm/bare.h"
#include "core/base/private_folder.h"
#include "core/tensor/device.h"

namespace howmany::benches {
namespace {

using Transport = std::shared_ptr<::gloo::transport::Device>;
constexpr const char* kAddress = "127.0.0.1";

class BareGloo : public Bare {
 public:
  BareGloo(Comm& comm, const std::string& folder, Transport device)
      : context_(std::make_shared<::gloo::rendezvous::Context>(comm.rank(), comm.size())) {
    ::gloo::rendezvous::FileStore store(folder);
    context_->connectFullMesh(store, device);
  }

  void barrier() override {
    ::gloo::BarrierOptions options(context_);
    ::gloo::barrier(options);
  }

  void all_reduce(float* data, size_t count) override {
    ::gloo::AllreduceOptions options(context_);
    options.setOutput(data, count);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&::gloo::sum<float>));
    ::gloo::allreduce(options);
  }

  void broadcast(float* data, size_t count) override {
    ::gloo::BroadcastOptions options(context_);
    options.setOutput(data, count);
    options.setRoot(0);
    ::gloo::broadcast(options);
  }

  void all_gather(const float* mine, float* all, size_t count_each) override {
    ::gloo::AllgatherOptions options(context_);
    options.setInput(const_cast<float*>(mine), count_each);  // NOLINT: gloo only reads it
    options.setOutput(all, count_each * static_cast<size_t>(context_->size));
    ::gloo::allgather(options);
  }

 private:
  std::shared_ptr<::gloo::rendezvous::Context> context_;
};

// Agrees on a folder of this host; all ranks learn its name. Rank 0 keeps it as long as they need
// it.
std::string agreed_folder(Comm& comm, const std::string& mine) {
  Tensor text = Tensor::zeros({4096}, Dtype::u8);
  std::ranges::copy(mine, text.mutable_data<uint8_t>());
  comm.broadcast(text, 0);
  return reinterpret_cast<const char*>(text.data<uint8_t>());
}

std::unique_ptr<Bare> connected(Comm& comm, const Transport& device) {
  const PrivateFolder own;
  const std::string folder = agreed_folder(comm, own.path());
  auto bare = std::make_unique<BareGloo>(comm, folder, device);
  comm.barrier();
  return bare;
}

}  // namespace

std::unique_ptr<Bare> bare_gloo(Comm& comm) {
  const UnboundScope unbound;  // for the transport thread
  ::gloo::transport::tcp::attr attr;
  attr.hostname = kAddress;
  return connected(comm, ::gloo::transport::tcp::CreateDevice(attr));
}

}  // namespace howmany::benches
