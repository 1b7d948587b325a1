// SPDX-License-Identifier: Apache-2.0
// The owner of a TCP connection's other end, if that is on this host: asked of the kernel by
// NETLINK_SOCK_DIAG (sock_diag(7)) in microseconds, else read from /proc/net/tcp, which takes
// milliseconds. Thread-safe.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <optional>

namespace howmany {

struct SocketOwner {
  uid_t user = 0;
  unsigned long inode = 0;  // 0: the other process has not accepted the connection yet
};

// Returns the owner of the established connection from `peer` to `self`, or nullopt if there is
// none on this host.
std::optional<SocketOwner> owner_of_peer(const sockaddr_storage& self,
                                         const sockaddr_storage& peer);
// Returns false if the kernel does not report the owners of sockets.
bool can_tell_owners();

}  // namespace howmany
