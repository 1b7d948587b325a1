// SPDX-License-Identifier: Apache-2.0
#include "core/data/workers/shm_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "core/base/error.h"

namespace howmany {
namespace {

constexpr size_t kFamilyBytes = offsetof(sockaddr_un, sun_path);

Descriptor local_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  HM_ENSURE(socket, "[loader] no local socket: {}", std::strerror(errno));
  return socket;
}

// A message with a descriptor, and one byte of data, since a message must not be empty.
struct Parcel {
  Parcel() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
};

void send_descriptor(int connection, int fd) {
  Parcel parcel;
  cmsghdr* const head = CMSG_FIRSTHDR(&parcel.message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  ::sendmsg(connection, &parcel.message, MSG_NOSIGNAL);
}

Descriptor receive_descriptor(int connection) {
  Parcel parcel;
  if (::recvmsg(connection, &parcel.message, MSG_CMSG_CLOEXEC) != 1) return {};
  const cmsghdr* const head = CMSG_FIRSTHDR(&parcel.message);
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
  return Descriptor(fd);
}

int segment_file() {
  const int fd = ::open(kShmFolder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  return fd >= 0 ? fd : ::memfd_create("tensor", MFD_CLOEXEC);
}

}  // namespace

int64_t shm_left() {
  struct statvfs status {};
  if (::statvfs(kShmFolder, &status) != 0 || ::access(kShmFolder, W_OK) != 0)
    return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(status.f_bavail) * static_cast<int64_t>(status.f_frsize);
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor new_segment(int64_t bytes) {
  const int64_t left = shm_left();
  HM_ENSURE(bytes <= left, "[loader] {} has {} bytes left, a tensor needs {}", kShmFolder, left,
            bytes);
  Descriptor segment(segment_file());
  HM_ENSURE(segment && ::ftruncate(segment.get(), std::max<int64_t>(1, bytes)) == 0,
            "[loader] no {} bytes of shared memory: {}", bytes, std::strerror(errno));
  return segment;
}

std::shared_ptr<void> map_segment(Descriptor segment, int64_t bytes) {
  const auto size = static_cast<size_t>(std::max<int64_t>(1, bytes));
  void* const data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, segment.get(), 0);
  HM_ENSURE(data != MAP_FAILED, "[loader] cannot map {} bytes: {}", bytes, std::strerror(errno));
  auto kept = std::make_shared<Descriptor>(std::move(segment));
  return {data, [size, kept](void* mapped) { ::munmap(mapped, size); }};
}

SegmentServer::SegmentServer() : socket_(local_socket()) {
  // If only the family is given, the system chooses a free abstract name (not a file).
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  socklen_t size = kFamilyBytes;
  HM_ENSURE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&name), size) == 0 &&
                ::listen(socket_.get(), SOMAXCONN) == 0,
            "[loader] cannot listen: {}", std::strerror(errno));
  size = sizeof name;
  ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size);
  address_.assign(name.sun_path, size - kFamilyBytes);
  thread_ = std::thread([this] { serve(); });
}

uint64_t SegmentServer::offer(Descriptor segment) {
  std::lock_guard lock(mutex_);
  offered_[++next_] = std::move(segment);
  return next_;
}

void SegmentServer::drop_all() {
  std::lock_guard lock(mutex_);
  offered_.clear();
}

void SegmentServer::serve() {
  for (;;) {
    const Descriptor connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection) answer(connection.get());
  }
}

// Sends nothing for an unknown ticket. Answers only the parent process of the same user.
void SegmentServer::answer(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.uid != ::geteuid())
    return;
  uint64_t ticket = 0;
  if (::recv(connection, &ticket, sizeof ticket, MSG_WAITALL) != sizeof ticket) return;
  Descriptor segment;
  {
    std::lock_guard lock(mutex_);
    const auto found = offered_.find(ticket);
    if (found == offered_.end()) return;
    segment = std::move(found->second);
    offered_.erase(found);
  }
  send_descriptor(connection, segment.get());
}

Descriptor fetch_segment(const std::string& address, uint64_t ticket) {
  const Descriptor connection = local_socket();
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.data(), std::min(address.size(), sizeof name.sun_path));
  const auto size = static_cast<socklen_t>(kFamilyBytes + address.size());
  HM_ENSURE(::connect(connection.get(), reinterpret_cast<sockaddr*>(&name), size) == 0 &&
                ::send(connection.get(), &ticket, sizeof ticket, MSG_NOSIGNAL) == sizeof ticket,
            "[loader] a worker did not send its tensor: {}", std::strerror(errno));
  Descriptor segment = receive_descriptor(connection.get());
  HM_ENSURE(segment, "[loader] a worker did not hand out its tensor (ulimit -n too small?)");
  return segment;
}

}  // namespace howmany
