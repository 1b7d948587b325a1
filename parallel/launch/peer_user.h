// SPDX-License-Identifier: Apache-2.0
// The user at the other end of a TCP connection, by the kernel's socket tables. Ranks use it to
// refuse other users of their host. It cannot be forged, and needs no shared secret. Thread-safe.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>

namespace howmany {

// Returns the user of the connection's other end if that is on this host and open, else nullopt.
// Waits up to 5 s until the other process has accepted the connection.
// `fd` is a connected TCP socket.
std::optional<uid_t> peer_user(int fd);

// Returns true if the other end belongs to this process's user or is on another host, and, without
// a check, if the kernel's tables cannot be read. Returns false if the connection was closed.
bool is_peer_allowed(int fd);

// The connections that this process opens or accepts during the lifetime of the object.
class NewConnections {
 public:
  NewConnections();
  // Returns false if one that is open leads to another user.
  bool all_allowed() const;

 private:
  std::set<std::string> before_;
};

}  // namespace howmany
