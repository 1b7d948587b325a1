// SPDX-License-Identifier: Apache-2.0
// FailureBoard: keys in the rendezvous that ranks set when they fail or leave. Libraries report
// what failed, seldom which rank caused it. Every rank that observes a failure posts it, so a rank
// that posts nothing is the cause. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm/engine.h"
#include "parallel/engines/gloo_rendezvous.h"

namespace howmany {

class FailureBoard {
 public:
  FailureBoard(std::shared_ptr<Rendezvous> rendezvous, std::string prefix, int rank, int size);

  void fail(const std::string& what) noexcept;
  void abort(std::string_view why) noexcept;  // fails, and names this rank as the cause
  void leave() noexcept;                      // without a failure

  bool has(const std::string& key);  // false if the rendezvous is gone
  std::string first_failure();       // its text; empty if no rank failed
  // Returns one of `ranks` that left.
  std::optional<int> find_left(const std::vector<int>& ranks);
  // Returns the error that names the cause, after fail(what). Waits up to 1 s for the last rank to
  // post, and up to 5 s while several have not.
  EngineError find_cause(const std::string& what);

 private:
  std::optional<EngineError> aborted();
  std::vector<int> find_silent();  // the other ranks that posted no failure
  std::string text_of(const std::string& key);
  void post(const std::string& key, const std::string& text) noexcept;

  const std::shared_ptr<Rendezvous> rendezvous_;
  const std::string prefix_;  // of this group's keys
  const int rank_, size_;
};

}  // namespace howmany
