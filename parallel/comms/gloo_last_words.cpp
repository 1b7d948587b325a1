#include "parallel/comms/gloo_last_words.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;

// How long a rank that failed waits for word from the others, to tell who is silent.
constexpr std::chrono::milliseconds kInquiry(1000);

std::string of(const char* word, int rank) { return fmt::format("{}/{}", word, rank); }

}  // namespace

LastWords::LastWords(std::shared_ptr<Rendezvous> rendezvous, std::string prefix, int rank, int size)
    : rendezvous_(std::move(rendezvous)), prefix_(std::move(prefix)), rank_(rank), size_(size) {}

void LastWords::fail(const std::string& what) noexcept {
  rendezvous_->set_deadline(Clock::now() + kInquiry);
  say(of("failed", rank_), what);
  say("failed", what);
}

void LastWords::abort(std::string_view why) noexcept {
  say("abort", fmt::format("{} {}", rank_, why));
  fail("aborted");
}

void LastWords::leave() noexcept {
  rendezvous_->set_deadline(Clock::now() + kInquiry);
  say(of("left", rank_), "");
  say("left", "");
}

std::string LastWords::first_failure() {
  rendezvous_->set_deadline(Clock::now() + kInquiry);
  return heard("failed") ? text_of("failed") : "";
}

std::optional<int> LastWords::heard_leave(const std::vector<int>& ranks) {
  if (!heard("left")) return {};
  const auto left = [this](int r) { return r != rank_ && heard(of("left", r)); };
  const auto found = std::ranges::find_if(ranks, left);
  return found == ranks.end() ? std::optional<int>() : *found;
}

EngineError LastWords::verdict(const std::string& what) {
  if (const auto culprit = aborted()) return *culprit;
  std::vector<int> silent;
  for (const auto until = Clock::now() + kInquiry; Clock::now() < until;) {
    silent.clear();
    for (int r = 0; r < size_; ++r)
      if (r != rank_ && !heard(of("failed", r))) silent.push_back(r);
    if (silent.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (const auto culprit = aborted()) return *culprit;
  return EngineError(silent, silent.empty() ? what : "failed: " + what);
}

std::optional<EngineError> LastWords::aborted() {
  if (!heard("abort")) return {};
  const std::string text = text_of("abort");
  if (text.empty()) return {};
  return EngineError(std::atoi(text.c_str()),
                     "failed: " + text.substr(std::min(text.find(' ') + 1, text.size())));
}

std::string LastWords::text_of(const std::string& word) try {
  const std::vector<char> text = rendezvous_->get(prefix_ + "/" + word);
  return {text.begin(), text.end()};
} catch (const std::exception&) {
  return "";  // being written, or rank 0 is gone with it
}

bool LastWords::heard(const std::string& word) {
  try {
    return rendezvous_->has(prefix_ + "/" + word);
  } catch (const std::exception&) {
    return false;
  }
}

void LastWords::say(const std::string& word, const std::string& text) noexcept {
  try {
    rendezvous_->set(prefix_ + "/" + word, {text.begin(), text.end()});
  } catch (const std::exception&) {
    // Somebody was first, or rank 0 is gone with it: closed connections and timeouts tell.
  }
}

}  // namespace howmany
