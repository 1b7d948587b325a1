// What ranks say in their rendezvous when they fail or leave, and who is to blame: libraries tell
// what broke, seldom who broke it. Each rank that fails says so, and the one that stays silent is
// the cause. Thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comms/gloo_rendezvous.h"
#include "parallel/engine.h"

namespace howmany {

class LastWords {
 public:
  // prefix: of the group's keys.
  LastWords(std::shared_ptr<Rendezvous> rendezvous, std::string prefix, int rank, int size);

  void fail(const std::string& what) noexcept;
  void abort(std::string_view why) noexcept;  // fails, and is itself the cause
  void leave() noexcept;                      // nothing failed

  bool heard(const std::string& word);  // false where the rendezvous is no more
  std::string first_failure();          // what the first said; empty while nobody failed
  // Who of `ranks` left.
  std::optional<int> heard_leave(const std::vector<int>& ranks);
  // After fail(what): gives the others a second to say the same.
  EngineError verdict(const std::string& what);

 private:
  std::optional<EngineError> aborted();
  std::string text_of(const std::string& word);
  void say(const std::string& word, const std::string& text) noexcept;

  const std::shared_ptr<Rendezvous> rendezvous_;
  const std::string prefix_;
  const int rank_, size_;
};

}  // namespace howmany
