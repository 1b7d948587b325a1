// SPDX-License-Identifier: Apache-2.0
#include "parallel/engines/gloo_failure_board.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;

// How long a rank that failed waits for posts from the others, to find the rank that posts none.
constexpr std::chrono::milliseconds kPostTimeout(1000);
// As above, while several ranks have posted nothing: on a busy machine some of them are only late.
constexpr std::chrono::milliseconds kLatePostTimeout(5000);

std::string key_of(const char* what, int rank) { return fmt::format("{}/{}", what, rank); }

}  // namespace

FailureBoard::FailureBoard(std::shared_ptr<Rendezvous> rendezvous, std::string prefix, int rank,
                           int size)
    : rendezvous_(std::move(rendezvous)), prefix_(std::move(prefix)), rank_(rank), size_(size) {}

void FailureBoard::fail(const std::string& what) noexcept {
  rendezvous_->set_deadline(Clock::now() + kPostTimeout);
  post(key_of("failed", rank_), what);
  post("failed", what);
}

void FailureBoard::abort(std::string_view why) noexcept {
  post("abort", fmt::format("{} {}", rank_, why));
  fail("aborted");
}

void FailureBoard::leave() noexcept {
  rendezvous_->set_deadline(Clock::now() + kPostTimeout);
  post(key_of("left", rank_), "");
  post("left", "");
}

std::string FailureBoard::first_failure() {
  rendezvous_->set_deadline(Clock::now() + kPostTimeout);
  return has("failed") ? text_of("failed") : "";
}

std::optional<int> FailureBoard::find_left(const std::vector<int>& ranks) {
  if (!has("left")) return {};
  const auto left = [this](int r) { return r != rank_ && has(key_of("left", r)); };
  const auto found = std::ranges::find_if(ranks, left);
  return found == ranks.end() ? std::optional<int>() : *found;
}

EngineError FailureBoard::find_cause(const std::string& what) {
  if (const auto culprit = aborted()) return *culprit;
  const auto start = Clock::now();
  rendezvous_->set_deadline(start + kLatePostTimeout);
  std::vector<int> silent = find_silent();
  const auto is_over = [&] {
    return Clock::now() - start >= (silent.size() > 1 ? kLatePostTimeout : kPostTimeout);
  };
  while (!silent.empty() && !is_over()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    silent = find_silent();
  }
  if (const auto culprit = aborted()) return *culprit;
  return EngineError(silent, silent.empty() ? what : "failed: " + what);
}

std::vector<int> FailureBoard::find_silent() {
  std::vector<int> silent;
  for (int r = 0; r < size_; ++r)
    if (r != rank_ && !has(key_of("failed", r))) silent.push_back(r);
  return silent;
}

std::optional<EngineError> FailureBoard::aborted() {
  if (!has("abort")) return {};
  const std::string text = text_of("abort");
  if (text.empty()) return {};
  return EngineError(std::atoi(text.c_str()),
                     "failed: " + text.substr(std::min(text.find(' ') + 1, text.size())));
}

std::string FailureBoard::text_of(const std::string& key) try {
  const std::vector<char> text = rendezvous_->get(prefix_ + "/" + key);
  return {text.begin(), text.end()};
} catch (const std::exception&) {
  return "";  // not complete yet, or the rendezvous is gone
}

bool FailureBoard::has(const std::string& key) {
  try {
    return rendezvous_->has(prefix_ + "/" + key);
  } catch (const std::exception&) {
    return false;
  }
}

void FailureBoard::post(const std::string& key, const std::string& text) noexcept {
  try {
    rendezvous_->set(prefix_ + "/" + key, {text.begin(), text.end()});
  } catch (const std::exception&) {
    // Another rank was first, or the rendezvous is gone: then closed connections and timeouts end
    // the calls of the peers.
  }
}

}  // namespace howmany
