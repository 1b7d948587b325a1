// SPDX-License-Identifier: Apache-2.0
#include "parallel/peer_user.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "core/base/error.h"

namespace howmany {
namespace {

constexpr const char* kTables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
constexpr std::chrono::seconds kAccept(5);  // how long the other process may take to accept
constexpr std::chrono::seconds kSeek(5);    // for a connection that the tables lack
constexpr std::chrono::milliseconds kPoll(1);
constexpr const char* kMapped = "0000000000000000FFFF0000";  // ::ffff:a.b.c.d, an IPv4 address

// An address as in the tables: words in the host's byte order. An IPv4 address has one word.
struct SocketAddress {
  std::string words;
  unsigned port = 0;
};

SocketAddress address_of(const sockaddr_storage& from) {
  SocketAddress address;
  uint32_t words[4];
  if (from.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
    address.words = fmt::format("{:08X}", v4.sin_addr.s_addr);
    address.port = ntohs(v4.sin_port);
  } else if (from.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
    std::memcpy(words, &v6.sin6_addr, sizeof words);
    for (const uint32_t word : words) address.words += fmt::format("{:08X}", word);
    address.port = ntohs(v6.sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) address.words = address.words.substr(24);
  }
  return address;
}

bool is_loopback(const SocketAddress& address) {
  const uint32_t first = htonl(0x7f000000), last = htonl(1);
  if (address.words.size() == 8)
    return (std::stoul(address.words, nullptr, 16) & htonl(0xff000000)) == first;
  return address.words == fmt::format("{:024}{:08X}", 0, last);
}

// Returns the text of an open connection in the table: "<local> <remote> 01 ".
std::string line_of(const SocketAddress& local, const SocketAddress& remote, bool v6) {
  const char* const prefix = v6 && local.words.size() == 8 ? kMapped : "";
  return fmt::format(" {}{}:{:04X} {}{}:{:04X} 01 ", prefix, local.words, local.port, prefix,
                     remote.words, remote.port);
}

struct Owner {
  unsigned user = 0;
  unsigned long inode = 0;  // 0: the other process has not accepted the connection yet
};

Owner owner_in(const std::string& line) {
  Owner owner;
  std::sscanf(line.c_str(), "%*s %*s %*s %*s %*s %*s %*s %u %*s %lu", &owner.user, &owner.inode);
  return owner;
}

struct Ends {
  SocketAddress self, peer;
};

std::optional<Ends> ends_of(int fd) {
  sockaddr_storage self{}, peer{};
  socklen_t self_size = sizeof self, peer_size = sizeof peer;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&self), &self_size) != 0 ||
      getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0)
    return {};
  return Ends{address_of(self), address_of(peer)};
}

std::optional<Owner> owner_of_peer(const Ends& ends) {
  for (const bool v6 : {false, true}) {
    const std::string wanted = line_of(ends.peer, ends.self, v6);
    std::ifstream table(kTables[v6 ? 1 : 0]);
    for (std::string line; std::getline(table, line);)
      if (line.find(wanted) != std::string::npos) return owner_in(line);
  }
  return {};
}

bool is_open(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_state == TCP_ESTABLISHED;
}

bool on_this_host(const Ends& ends) {
  return is_loopback(ends.peer) || ends.peer.words == ends.self.words;
}

// Returns the owner of the other end, or nullopt if that is closed or on another host, or if the
// tables cannot be read. They may lack a connection while others come and go, so one that must be
// in them is sought again. Waits up to `accept` until the other end is accepted and has an owner.
std::optional<Owner> seek_owner(int fd, const Ends& ends, std::chrono::milliseconds accept) {
  if (access(kTables[0], R_OK) != 0) return {};
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const std::optional<Owner> owner = owner_of_peer(ends);
    const auto elapsed = std::chrono::steady_clock::now() - start;
    if (owner && (owner->inode != 0 || elapsed >= accept)) return owner;
    if (!owner && (!on_this_host(ends) || !is_open(fd) || elapsed >= kSeek)) return {};
    std::this_thread::sleep_for(kPoll);
  }
}

std::optional<uid_t> user_of_peer(int fd, const Ends& ends) {
  const std::optional<Owner> owner = seek_owner(fd, ends, kAccept);
  return owner && owner->inode != 0 ? std::optional(owner->user) : std::nullopt;
}

// True only with proof. A connection that this process dialed may not be accepted yet; then its
// other end has no owner, and carries no data. The other end of one that it accepted has an owner.
bool is_of_another_user(int fd) {
  const std::optional<Ends> ends = ends_of(fd);
  const std::optional<Owner> owner =
      ends ? seek_owner(fd, *ends, std::chrono::milliseconds(0)) : std::nullopt;
  return owner && owner->inode != 0 && owner->user != geteuid();
}

// Returns the sockets of this process by their names in /proc, "socket:[4711]".
std::map<std::string, int> sockets_of_this_process() {
  namespace fs = std::filesystem;
  std::map<std::string, int> sockets;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", gone)) {
    const std::string name = fs::read_symlink(entry.path(), gone).string();
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
  return !is_loopback(ends->peer) || access(kTables[0], R_OK) != 0;
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
