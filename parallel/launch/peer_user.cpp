// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/peer_user.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include "parallel/launch/socket_owner.h"

namespace howmany {
namespace {

constexpr std::chrono::seconds kAccept(5);  // how long the other process may take to accept
constexpr std::chrono::seconds kSeek(5);    // for a connection that the tables lack
constexpr std::chrono::milliseconds kPoll(1);

struct Ends {
  sockaddr_storage self{}, peer{};
};

std::optional<Ends> ends_of(int fd) {
  Ends ends;
  socklen_t self_size = sizeof ends.self, peer_size = sizeof ends.peer;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&ends.self), &self_size) != 0 ||
      getpeername(fd, reinterpret_cast<sockaddr*>(&ends.peer), &peer_size) != 0)
    return {};
  return ends;
}

// Returns the address in network byte order, an IPv4 address mapped to IPv6.
in6_addr mapped_address(const sockaddr_storage& from) {
  if (from.ss_family == AF_INET6) return reinterpret_cast<const sockaddr_in6&>(from).sin6_addr;
  in6_addr mapped{};
  mapped.s6_addr[10] = mapped.s6_addr[11] = 0xff;
  std::memcpy(&mapped.s6_addr[12], &reinterpret_cast<const sockaddr_in&>(from).sin_addr, 4);
  return mapped;
}

bool is_loopback(const in6_addr& address) {
  return IN6_IS_ADDR_LOOPBACK(&address) ||
         (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

bool is_open(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_state == TCP_ESTABLISHED;
}

bool on_this_host(const Ends& ends) {
  const in6_addr self = mapped_address(ends.self), peer = mapped_address(ends.peer);
  return is_loopback(peer) || std::memcmp(&self, &peer, sizeof self) == 0;
}

// Returns the owner of the other end, or nullopt if that is closed or on another host, or if the
// tables cannot be read. They may lack a connection while others come and go, so one that must be
// in them is sought again. Waits up to `accept` until the other end is accepted and has an owner.
std::optional<SocketOwner> seek_owner(int fd, const Ends& ends, std::chrono::milliseconds accept) {
  if (!can_tell_owners()) return {};
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const std::optional<SocketOwner> owner = owner_of_peer(ends.self, ends.peer);
    const auto elapsed = std::chrono::steady_clock::now() - start;
    if (owner && (owner->inode != 0 || elapsed >= accept)) return owner;
    if (!owner && (!on_this_host(ends) || !is_open(fd) || elapsed >= kSeek)) return {};
    std::this_thread::sleep_for(kPoll);
  }
}

std::optional<uid_t> user_of_peer(int fd, const Ends& ends) {
  const std::optional<SocketOwner> owner = seek_owner(fd, ends, kAccept);
  return owner && owner->inode != 0 ? std::optional(owner->user) : std::nullopt;
}

// True only with proof. A connection that this process dialed may not be accepted yet; then its
// other end has no owner, and carries no data. The other end of one that it accepted has an owner.
bool is_of_another_user(int fd) {
  const std::optional<Ends> ends = ends_of(fd);
  const std::optional<SocketOwner> owner =
      ends ? seek_owner(fd, *ends, std::chrono::milliseconds(0)) : std::nullopt;
  return owner && owner->inode != 0 && owner->user != geteuid();
}

// Returns the target of a symbolic link; "" if it is gone.
std::string link_of(const std::string& path) {
  char target[64];
  const ssize_t size = readlink(path.c_str(), target, sizeof target);
  return size < 0 ? "" : std::string(target, static_cast<size_t>(size));
}

// Returns the sockets of this process by their names in /proc, "socket:[4711]".
std::map<std::string, int> sockets_of_this_process() {
  namespace fs = std::filesystem;
  std::map<std::string, int> sockets;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", gone)) {
    const std::string name = link_of(entry.path());
    if (name.starts_with("socket:")) sockets[name] = std::stoi(entry.path().filename());
  }
  return sockets;
}

}  // namespace

std::optional<uid_t> peer_user(int fd) {
  const std::optional<Ends> ends = ends_of(fd);
  return ends ? user_of_peer(fd, *ends) : std::nullopt;
}

bool is_peer_allowed(int fd) {
  const std::optional<Ends> ends = ends_of(fd);
  if (!ends) return false;
  if (const std::optional<uid_t> user = user_of_peer(fd, *ends)) return *user == geteuid();
  return !is_loopback(mapped_address(ends->peer)) || !can_tell_owners();
}

NewConnections::NewConnections() {
  for (const auto& [name, fd] : sockets_of_this_process()) before_.insert(name);
}

bool NewConnections::all_allowed() const {
  for (const auto& [name, fd] : sockets_of_this_process())
    if (!before_.contains(name) && is_of_another_user(fd)) return false;
  return true;
}

}  // namespace howmany
