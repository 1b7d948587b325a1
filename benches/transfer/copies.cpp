// SPDX-License-Identifier: Apache-2.0
#include "benches/transfer/copies.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "benches/common/machine.h"
#include "benches/common/verify.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/fd.h"
#include "core/host/copy.h"
#include "core/host/cpu_limits.h"
#include "parallel/launch/launch.h"

namespace howmany::benches {
namespace {

constexpr int64_t kTimedBytes = 64 << 10;  // minimum bytes between two readings of the clock

struct Buffers {
  explicit Buffers(int64_t bytes)
      : source(Tensor::empty({bytes}, Dtype::u8)), target(Tensor::full({bytes}, 255, Dtype::u8)) {
    fill_pattern(source.mutable_raw(), bytes);
  }
  void copy() {
    copy_host(target.mutable_raw(), source.raw(), static_cast<size_t>(source.bytes()));
  }
  void check(const char* what) const { check_pattern(target.raw(), target.bytes(), what); }
  Tensor source, target;
};

// Runs body on ranks that are threads, each on its own device. Returns the samples of rank 0.
Samples on_threads(int threads, const std::function<Samples(Comm&)>& body) {
  Samples samples;
  launch_threads(threads, [&](Comm& comm) {
    const DeviceScope on({.type = DeviceType::cpu, .index = comm.rank()});
    Samples mine = body(comm);
    if (comm.rank() == 0) samples = std::move(mine);
  });
  return samples;
}

Samples checked_copies(Comm& comm, Buffers& buffers, const TimingOptions& options,
                       const char* what) {
  buffers.copy();
  buffers.check(what);
  std::ranges::fill(buffers.target.mutable_values<uint8_t>(), 255);
  // A single small copy is shorter than reading the clock.
  const int repeats = static_cast<int>(std::max<int64_t>(1, kTimedBytes / buffers.source.bytes()));
  Samples samples = time_iterations(comm, options, [&] {
    for (int i = 0; i < repeats; ++i) buffers.copy();
  });
  for (double& s : samples.seconds) s /= repeats;
  buffers.check(what);
  return samples;
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) { HM_ENSURE(fd_, "socket: {}", std::strerror(errno)); }
  int fd() const { return fd_.get(); }
  void no_delay() const {
    const int on = 1;
    ::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  void send(const uint8_t* data, int64_t bytes) const {
    while (bytes > 0) {
      const ssize_t n = ::send(fd(), data, static_cast<size_t>(bytes), MSG_NOSIGNAL);
      HM_ENSURE(n > 0, "loopback: send: {}", std::strerror(errno));
      data += n;
      bytes -= n;
    }
  }
  void receive(uint8_t* data, int64_t bytes) const {
    while (bytes > 0) {
      const ssize_t n = ::recv(fd(), data, static_cast<size_t>(bytes), 0);
      HM_ENSURE(n > 0, "loopback: receive: {}", std::strerror(errno));
      data += n;
      bytes -= n;
    }
  }

 private:
  const Fd fd_;
};

// A connection of this machine to itself, on a port chosen by the system.
struct Loopback {
  Loopback() : listener(::socket(AF_INET, SOCK_STREAM, 0)), out(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place;
    auto* const address = reinterpret_cast<sockaddr*>(&place);
    const bool ok = ::bind(listener.fd(), address, size) == 0 && ::listen(listener.fd(), 1) == 0 &&
                    ::getsockname(listener.fd(), address, &size) == 0 &&
                    ::connect(out.fd(), address, size) == 0;
    HM_ENSURE(ok, "loopback: {}", std::strerror(errno));
    in = std::make_unique<Socket>(::accept(listener.fd(), nullptr, nullptr));
    in->no_delay();
    out.no_delay();
  }
  Socket listener, out;
  std::unique_ptr<Socket> in;
};

cpu_set_t cpus_of(int node) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const auto& entry : describe_numa()) {
    if (entry["node"] != node) continue;
    for (const int cpu : parse_cpu_list(entry["cpus"].get<std::string>())) CPU_SET(cpu, &set);
  }
  return set;
}

void move_to(int node) {
  const cpu_set_t set = cpus_of(node);
  HM_ENSURE(::sched_setaffinity(0, sizeof set, &set) == 0, "cannot move to NUMA node {}: {}", node,
            std::strerror(errno));
}

uint8_t pattern(int64_t at) { return static_cast<uint8_t>(at % 251); }

}  // namespace

void fill_pattern(void* to, int64_t bytes) {
  auto* const out = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < bytes; ++i) out[i] = pattern(i);
}

void check_pattern(const void* seen, int64_t bytes, const char* what) {
  const auto* const in = static_cast<const uint8_t*>(seen);
  for (int64_t i = 0; i < bytes; ++i)
    if (in[i] != pattern(i))
      throw WrongData(
          fmt::format("wrong data: {}: byte {}: {} instead of {}", what, i, in[i], pattern(i)));
}

Samples time_copy(int threads, int64_t bytes, const TimingOptions& options) {
  return on_threads(threads, [&](Comm& comm) {
    const int64_t begin = bytes * comm.rank() / threads, end = bytes * (comm.rank() + 1) / threads;
    Buffers buffers(std::max<int64_t>(1, end - begin));
    return checked_copies(comm, buffers, options, "copy of host memory");
  });
}

Samples time_small_copies(int64_t bytes, int64_t count, const TimingOptions& options) {
  return on_threads(1, [&](Comm& comm) {
    // Uses every second place, so that no two copies are adjacent.
    Buffers buffers(2 * bytes * count);
    const auto copy_all = [&] {
      uint8_t* const to = buffers.target.mutable_data<uint8_t>();
      const uint8_t* const from = buffers.source.data<uint8_t>();
      for (int64_t i = 0; i < count; ++i)
        copy_host(to + 2 * bytes * i, from + 2 * bytes * i, static_cast<size_t>(bytes));
    };
    const Samples samples = time_iterations(comm, options, copy_all);
    const uint8_t* const to = buffers.target.data<uint8_t>();
    const uint8_t* const from = buffers.source.data<uint8_t>();
    for (int64_t i = 0; i < 2 * bytes * count; ++i) {
      const int expected = i / bytes % 2 == 0 ? from[i] : 255;
      if (to[i] == expected) continue;
      throw WrongData(
          fmt::format("wrong data: small copies: byte {}: {} instead of {}", i, to[i], expected));
    }
    return samples;
  });
}

Samples time_loopback(int64_t bytes, const TimingOptions& options) {
  const Loopback connection;
  return on_threads(2, [&](Comm& comm) {
    Buffers buffers(bytes);
    const Samples samples = time_iterations(comm, options, [&] {
      if (comm.rank() == 0) connection.out.send(buffers.source.data<uint8_t>(), bytes);
      if (comm.rank() == 1) connection.in->receive(buffers.target.mutable_data<uint8_t>(), bytes);
    });
    if (comm.rank() == 1) buffers.check("loopback TCP");
    return samples;
  });
}

Samples time_numa_copy(int from, int on, int64_t bytes, const TimingOptions& options) {
  Samples samples;
  // Runs on a new thread, because pages belong to the node of the thread that touches them first.
  launch_threads(1, [&](Comm& comm) {
    move_to(from);
    Buffers buffers(bytes);
    move_to(on);
    buffers.target = Tensor::full({bytes}, 255, Dtype::u8);
    samples = checked_copies(comm, buffers, options, "copy between NUMA nodes");
  });
  return samples;
}

}  // namespace howmany::benches
