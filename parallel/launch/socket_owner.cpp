// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/socket_owner.h"

#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "core/base/fd.h"

namespace howmany {
namespace {

constexpr const char* kTables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
constexpr const char* kMapped = "0000000000000000FFFF0000";  // ::ffff:a.b.c.d, an IPv4 address

// An address in network byte order. IPv4 addresses have one word, also if they were mapped to IPv6.
struct Address {
  int family = AF_INET;
  uint32_t words[4] = {};
  in_port_t port = 0;
};

Address address_of(const sockaddr_storage& from) {
  Address address;
  if (from.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
    address.words[0] = v4.sin_addr.s_addr;
    address.port = v4.sin_port;
    return address;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
  address.port = v6.sin6_port;
  std::memcpy(address.words, &v6.sin6_addr, sizeof address.words);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    address.words[0] = address.words[3];
  } else {
    address.family = AF_INET6;
  }
  return address;
}

struct DiagRequest {
  nlmsghdr header = {};
  inet_diag_req_v2 body = {};
};

DiagRequest diag_request(const Address& self, const Address& peer) {
  DiagRequest request;
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_family = static_cast<uint8_t>(peer.family);
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0u;
  inet_diag_sockid& id = request.body.id;
  id.idiag_sport = peer.port;
  id.idiag_dport = self.port;
  const size_t bytes = peer.family == AF_INET ? sizeof(uint32_t) : sizeof peer.words;
  std::memcpy(id.idiag_src, peer.words, bytes);
  std::memcpy(id.idiag_dst, self.words, bytes);
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return request;
}

// What NETLINK_SOCK_DIAG says. `known` is false if this kernel or its policy does not answer.
struct DiagAnswer {
  bool known = false;
  std::optional<SocketOwner> owner;
};

DiagAnswer ask_kernel(const Address& self, const Address& peer) {
  const Fd netlink(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  const DiagRequest request = diag_request(self, peer);
  if (!netlink || send(netlink.get(), &request, sizeof request, 0) != sizeof request) return {};
  alignas(nlmsghdr) char buffer[4096];
  const ssize_t size = recv(netlink.get(), buffer, sizeof buffer, 0);
  nlmsghdr header;
  if (size < static_cast<ssize_t>(sizeof header)) return {};
  std::memcpy(&header, buffer, sizeof header);
  const size_t body = static_cast<size_t>(size) - NLMSG_HDRLEN;
  if (header.nlmsg_type == NLMSG_ERROR && body >= sizeof(nlmsgerr)) {
    nlmsgerr error;
    std::memcpy(&error, buffer + NLMSG_HDRLEN, sizeof error);
    return {.known = error.error == -ENOENT, .owner = {}};
  }
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || body < sizeof(inet_diag_msg)) return {};
  inet_diag_msg found;
  std::memcpy(&found, buffer + NLMSG_HDRLEN, sizeof found);
  if (found.idiag_state != TCP_ESTABLISHED) return {.known = true, .owner = {}};
  return {.known = true, .owner = SocketOwner{found.idiag_uid, found.idiag_inode}};
}

// Returns an address as in the tables: words in the host's byte order.
std::string text_of(const Address& address, bool v6) {
  std::string text;
  if (address.family == AF_INET) {
    text = fmt::format("{}{:08X}", v6 ? kMapped : "", address.words[0]);
  } else {
    for (const uint32_t word : address.words) text += fmt::format("{:08X}", word);
  }
  return fmt::format("{}:{:04X}", text, ntohs(address.port));
}

SocketOwner owner_in(const std::string& line) {
  SocketOwner owner;
  std::sscanf(line.c_str(), "%*s %*s %*s %*s %*s %*s %*s %u %*s %lu", &owner.user, &owner.inode);
  return owner;
}

std::optional<SocketOwner> read_tables(const Address& self, const Address& peer) {
  for (const bool v6 : {false, true}) {
    const std::string wanted = fmt::format(" {} {} 01 ", text_of(peer, v6), text_of(self, v6));
    std::ifstream table(kTables[v6 ? 1 : 0]);
    for (std::string line; std::getline(table, line);)
      if (line.find(wanted) != std::string::npos) return owner_in(line);
  }
  return {};
}

}  // namespace

std::optional<SocketOwner> owner_of_peer(const sockaddr_storage& self,
                                         const sockaddr_storage& peer) {
  const Address from = address_of(self), to = address_of(peer);
  const DiagAnswer answer = ask_kernel(from, to);
  return answer.known ? answer.owner : read_tables(from, to);
}

bool can_tell_owners() { return access(kTables[0], R_OK) == 0; }

}  // namespace howmany
