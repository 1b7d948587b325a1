// SPDX-License-Identifier: Apache-2.0
// Protocol. Each request has its own connection: 's' or 'g', the sizes of key and value (4 bytes
//   each, network order), key, value. The answer is the size of the value and the value, or
//   kAbsent.
// Security. Ranks and server refuse other users of the same host. Clients of other hosts are
//   untrusted: sizes, connections and time are bounded, and invalid requests are dropped.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/fd.h"
#include "parallel/engines/gloo_rendezvous.h"
#include "parallel/launch/peer_user.h"

namespace howmany {
namespace {

constexpr uint32_t kAbsent = ~uint32_t{0};
constexpr size_t kHeader = 9;
constexpr size_t kMaxKey = 1024, kMaxValue = 1 << 20, kMaxStored = 64 << 20;
constexpr size_t kMaxClients = 4096;
constexpr std::chrono::seconds kMaxTalk(10);
constexpr std::chrono::milliseconds kMinTalk(1000);

using Clock = std::chrono::steady_clock;

void append_size(std::string& text, size_t size) {
  const uint32_t wire = htonl(static_cast<uint32_t>(size));
  text.append(reinterpret_cast<const char*>(&wire), sizeof wire);
}

uint32_t size_at(std::string_view text, size_t offset) {
  uint32_t wire = 0;
  std::memcpy(&wire, text.data() + offset, sizeof wire);
  return ntohl(wire);
}

// Tries use(fd, address) on every address of host:port, until it returns true.
Fd open_socket(const std::string& host, const std::string& port, int flags,
               const std::function<bool(int, const addrinfo&)>& use) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  HM_ENSURE(error == 0, "{}:{}: {}", host, port, gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    Fd fd(socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    if (fd && use(fd.get(), *at)) return fd;
  }
  return Fd();
}

class Server {
 public:
  Server(const std::string& host, const std::string& port) : wake_(eventfd(0, EFD_CLOEXEC)) {
    HM_ENSURE(wake_, "eventfd: {}", std::strerror(errno));
    listener_ = open_socket(host, port, AI_PASSIVE, [](int fd, const addrinfo& at) {
      const int on = 1;
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      return bind(fd, at.ai_addr, at.ai_addrlen) == 0 && listen(fd, 128) == 0 &&
             fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
    });
    HM_ENSURE(listener_, "rank 0 cannot listen on {}:{}: {}", host, port, std::strerror(errno));
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  ~Server() {
    thread_.request_stop();
    eventfd_write(wake_.get(), 1);
  }

 private:
  struct Client {
    Fd fd;
    Clock::time_point until;
    std::string in, out;
  };

  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Client& client : clients_)
        polled.push_back(
            {client.fd.get(), static_cast<short>(client.out.empty() ? POLLIN : POLLOUT), 0});
      poll(polled.data(), polled.size(), 1000);
      const auto now = Clock::now();
      size_t i = 2;
      std::erase_if(clients_, [&](Client& client) {
        const bool active = polled[i++].revents != 0;
        return now > client.until || (active && !talk(client));
      });
      if (polled[1].revents != 0) accept_client(now);
    }
  }

  void accept_client(Clock::time_point now) {
    Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd && clients_.size() < kMaxClients && is_peer_allowed(fd.get()))
      clients_.push_back({std::move(fd), now + kMaxTalk, "", ""});
  }

  // Returns false if the connection is finished.
  bool talk(Client& client) {
    if (client.out.empty()) {
      char buffer[4096];
      const ssize_t n = recv(client.fd.get(), buffer, sizeof buffer, 0);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      client.in.append(buffer, static_cast<size_t>(n));
      return n > 0 && answer(client);
    }
    const ssize_t n = ::send(client.fd.get(), client.out.data(), client.out.size(), MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    client.out.erase(0, static_cast<size_t>(n));
    return !client.out.empty();
  }

  // Answers once the request is complete. Returns false if the request is invalid.
  bool answer(Client& client) {
    if (client.in.size() < kHeader) return true;
    const size_t key_size = size_at(client.in, 1), value_size = size_at(client.in, 5);
    if (key_size > kMaxKey || value_size > kMaxValue) return false;
    const size_t total = kHeader + key_size + value_size;
    if (client.in.size() < total) return true;
    const std::string key = client.in.substr(kHeader, key_size);
    if (client.in.size() > total || (client.in[0] != 's' && client.in[0] != 'g')) return false;
    if (client.in[0] == 's' && stored_ + total > kMaxStored) return false;
    const bool added = client.in[0] == 's' &&
                       values_.try_emplace(key, client.in.substr(kHeader + key_size)).second;
    if (added) stored_ += total;
    const auto value = values_.find(key);
    if (client.in[0] == 's' && !added) return false;
    append_size(client.out, value == values_.end() ? kAbsent : value->second.size());
    if (value != values_.end()) client.out += value->second;
    return true;
  }

  Fd wake_, listener_;
  std::vector<Client> clients_;
  std::map<std::string, std::string> values_;
  size_t stored_ = 0;
  std::jthread thread_;
};

// Engines of one process with the same address share a server, because a port has one listener.
std::shared_ptr<Server> server_at(const std::string& host, const std::string& port) {
  static std::mutex mutex;
  static auto* const all = new std::map<std::string, std::weak_ptr<Server>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Server>& kept = (*all)[host + ":" + port];
  std::shared_ptr<Server> server = kept.lock();
  if (!server) kept = server = std::make_shared<Server>(host, port);
  return server;
}

class Tcp : public Rendezvous {
 public:
  Tcp(std::string host, std::string port, int rank, Deadline deadline)
      : host_(std::move(host)), port_(std::move(port)) {
    if (rank == 0) server_ = server_at(host_, port_);
    while (!(address_ = reach())) {
      HM_ENSURE(Clock::now() < deadline, "no process listens on {}:{}: is rank 0 up?", host_,
                port_);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  void set(const std::string& key, const std::vector<char>& data) override {
    HM_ENSURE(ask('s', key, {data.data(), data.size()}), "{}:{} refused {}", host_, port_, key);
  }
  bool has(const std::string& key) override { return ask('g', key, {}).has_value(); }
  std::string address() const override { return *address_; }

 protected:
  std::vector<char> fetch(const std::string& key) override {
    const auto value = ask('g', key, {});
    HM_ENSURE(value, "{}:{} lost {}", host_, port_, key);
    return {value->begin(), value->end()};
  }

 private:
  Fd dial() const {
    // If the link is cut, the host does not answer, and the kernel would retry for minutes.
    const auto left = std::clamp<Clock::duration>(latest() - Clock::now(), kMinTalk, kMaxTalk);
    const auto talk = std::chrono::duration_cast<std::chrono::microseconds>(left).count();
    Fd dialed = open_socket(host_, port_, 0, [talk](int fd, const addrinfo& at) {
      const timeval limit{talk / 1'000'000, talk % 1'000'000};
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
      setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
      return connect(fd, at.ai_addr, at.ai_addrlen) == 0;
    });
    if (!dialed || is_peer_allowed(dialed.get())) return dialed;
    HM_ENSURE(!peer_user(dialed.get()),
              "another user of this host listens on {}:{}: choose another MASTER_PORT", host_,
              port_);
    return Fd();
  }

  // Returns the local address of a connection to the server, or nullopt if there is none.
  std::optional<std::string> reach() const {
    const Fd fd = dial();
    if (!fd) return {};
    sockaddr_storage self{};
    socklen_t size = sizeof self;
    char text[NI_MAXHOST];
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&self), &size);
    const int error = getnameinfo(reinterpret_cast<sockaddr*>(&self), size, text, sizeof text,
                                  nullptr, 0, NI_NUMERICHOST);
    HM_ENSURE(error == 0, "own address: {}", gai_strerror(error));
    return text;
  }

  std::optional<std::string> ask(char what, const std::string& key, std::string_view value) const {
    std::string request(1, what);
    append_size(request, key.size());
    append_size(request, value.size());
    request.append(key).append(value);
    const Fd fd = dial();
    HM_ENSURE(fd, "rank 0 no longer listens on {}:{}", host_, port_);
    for (size_t sent = 0; sent < request.size();) {
      const ssize_t n =
          ::send(fd.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      HM_ENSURE(n > 0, "{}:{}: {}", host_, port_, std::strerror(errno));
      sent += static_cast<size_t>(n);
    }
    const uint32_t size = size_at(receive(fd, 4), 0);
    if (size == kAbsent) return {};
    HM_ENSURE(size <= kMaxValue, "what listens on {}:{} is not a rank 0", host_, port_);
    return receive(fd, size);
  }

  std::string receive(const Fd& fd, size_t size) const {
    std::string bytes(size, '\0');
    for (size_t got = 0; got < size;) {
      const ssize_t n = recv(fd.get(), bytes.data() + got, size - got, 0);
      HM_ENSURE(n > 0, "{}:{} hung up", host_, port_);
      got += static_cast<size_t>(n);
    }
    return bytes;
  }

  const std::string host_, port_;
  std::shared_ptr<Server> server_;
  std::optional<std::string> address_;
};

}  // namespace

std::unique_ptr<Rendezvous> make_tcp_rendezvous(const std::string& host, const std::string& port,
                                                int rank, Rendezvous::Deadline deadline) {
  return std::make_unique<Tcp>(host, port, rank, deadline);
}

}  // namespace howmany
