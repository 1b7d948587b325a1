// SPDX-License-Identifier: Apache-2.0
// A Link sends activations forward, or their gradients backward, between two neighbouring stages.
// Each direction has its own Link, so that neither waits for the other. Tensors arrive in the order
// sent, on the receiver's device. One thread per end makes calls.
//
//   link.expect(shape, Dtype::f32);     // posted early: the transfer overlaps computation
//   Tensor x = link.receive();
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "parallel/comm/comm.h"

namespace howmany {

class Link {
 public:
  virtual ~Link() = default;
  virtual void send(const Tensor& t) = 0;  // does not block; t must not be written any more
  virtual void expect(const Shape& shape, Dtype dtype) = 0;
  virtual Tensor receive() = 0;  // blocks for the oldest expected tensor; throws on failure
  virtual void flush() = 0;      // blocks until all sends are complete
  // Fails all calls at both ends. Any thread may call it.
  virtual void close(std::string_view why) = 0;
};

// The links of one stage. Null if there is no neighbour.
struct StageLinks {
  std::shared_ptr<Link> from_previous, to_next;  // activations
  std::shared_ptr<Link> from_next, to_previous;  // their gradients
  void flush() const;
  void close(std::string_view why) const;
};

// Returns this rank's links; stage i is rank i. Splits off a Comm for each Link. Collective.
StageLinks connect_stages(Comm& stages, Device device);
// Returns the links of stages that are threads of this process, stage i on devices[i].
std::vector<StageLinks> connect_threads(const std::vector<Device>& devices);

}  // namespace howmany
