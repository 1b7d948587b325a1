// SPDX-License-Identifier: Apache-2.0
// Copies the output of a child to a file descriptor of this process, and keeps its end.
#pragma once

#include <poll.h>

#include <cstddef>
#include <string>

namespace howmany {

class Relay {
 public:
  explicit Relay(int to);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int input() const { return ends_[1]; }  // for the child
  void close_input();
  // Returns the event for poll(): more input, or room in the output.
  pollfd wanted() const;
  // Copies at most one block, which fits into a pipe with room. Returns false if there is none.
  bool copy();
  int error() const { return error_; }  // errno of the first failed write, or 0
  // Returns the last line that is not empty.
  std::string last_line() const;

 private:
  void write_all(const char* data, size_t size);

  const int to_;
  int ends_[2] = {-1, -1};
  int error_ = 0;
  std::string tail_;
};

}  // namespace howmany
