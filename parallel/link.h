// What carries activations forward and their gradients backward between neighbouring stages of a
// model: each Link is one direction of one edge, so that nothing waits behind anything that goes
// the other way. Tensors arrive in the order sent, on the receiver's device. One thread per end.
//
//   link.expect(shape, Dtype::f32);     // posted early, so that it travels while we compute
//   Tensor x = link.receive();
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "parallel/comm.h"

namespace howmany {

class Link {
 public:
  virtual ~Link() = default;
  virtual void send(const Tensor& t) = 0;  // returns at once; nobody writes to t any more
  virtual void expect(const Shape& shape, Dtype dtype) = 0;
  virtual Tensor receive() = 0;  // the oldest expected; throws what failed
  virtual void flush() = 0;      // all that was sent has left
  // Ends every call here and at the other end. From any thread.
  virtual void close(std::string_view why) = 0;
};

// The links of one stage. Null at the ends of the model.
struct StageLinks {
  std::shared_ptr<Link> from_previous, to_next;  // activations
  std::shared_ptr<Link> from_next, to_previous;  // their gradients
  void flush() const;
  void close(std::string_view why) const;
};

// Stage = rank. A Comm for each direction of each edge. Collective.
StageLinks connect_stages(Comm& stages, Device device);
// The same between the threads of a process, stage i on devices[i].
std::vector<StageLinks> connect_threads(const std::vector<Device>& devices);

}  // namespace howmany
