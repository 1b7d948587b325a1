// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/relay.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace howmany {
namespace {

constexpr size_t kTail = 4096;  // bytes kept for last_line()

}  // namespace

Relay::Relay(int to) : to_(to) {
  HM_ENSURE(pipe2(ends_, O_CLOEXEC) == 0, "[launch] pipe: {}", std::strerror(errno));
  fcntl(ends_[0], F_SETFL, O_NONBLOCK);
}

Relay::~Relay() {
  for (const int end : ends_)
    if (end >= 0) close(end);
}

void Relay::close_input() { close(std::exchange(ends_[1], -1)); }

pollfd Relay::wanted() const {
  pollfd room{to_, POLLOUT, 0};
  return poll(&room, 1, 0) == 0 ? room : pollfd{ends_[0], POLLIN, 0};
}

bool Relay::copy() {
  char block[PIPE_BUF];
  const ssize_t n = ends_[0] < 0 ? 0 : read(ends_[0], block, sizeof block);
  if (n == 0 && ends_[0] >= 0) close(std::exchange(ends_[0], -1));
  if (n <= 0) return false;
  write_all(block, static_cast<size_t>(n));
  tail_.append(block, static_cast<size_t>(n));
  if (tail_.size() > 2 * kTail) tail_.erase(0, tail_.size() - kTail);
  return true;
}

std::string Relay::last_line() const {
  const size_t end = tail_.find_last_not_of(" \t\r\n-");
  if (end == std::string::npos) return "";
  const size_t before = tail_.find_last_of('\n', end);
  const size_t start = before == std::string::npos ? 0 : before + 1;
  return tail_.substr(start, end - start + 1);
}

void Relay::write_all(const char* data, size_t size) {
  while (size > 0 && error_ == 0) {
    const ssize_t n = write(to_, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error_ = errno;
    if (n < 0) return;
    data += n;
    size -= static_cast<size_t>(n);
  }
}

}  // namespace howmany
