// SPDX-License-Identifier: Apache-2.0
#include "parallel/engines/local_group.h"

#include <algorithm>
#include <thread>

namespace howmany {
namespace {

// About 20 us: longer than a peer on its own core needs to answer, shorter than to sleep and wake
// twice.
constexpr int kSpins = 500;

}  // namespace

LocalGroup::LocalGroup(std::vector<int> members, bool may_spin)
    : members_(std::move(members)),
      spins_(may_spin ? kSpins : 0),
      slots_(std::make_unique<RankSlot[]>(members_.size())) {}

void LocalGroup::notify() {
  if (sleepers_ == 0) return;
  { std::lock_guard lock(mutex_); }  // ranks that checked before the change now sleep
  changed_.notify_all();
}

void LocalGroup::enter(int rank) {
  slot(rank).busy = true;
  if (!failed_) return;
  slot(rank).busy = false;
  throw_failure(rank);
}

void LocalGroup::fail(int peer, std::string_view why) {
  std::lock_guard lock(mutex_);
  if (failed_) return;
  failed_peer_ = peer;
  failed_why_ = why;
  failed_ = true;
  changed_.notify_all();
}

void LocalGroup::throw_failure(int rank) {
  for (int r = 0; r < size(); ++r)
    while (r != rank && slot(r).busy) std::this_thread::yield();
  std::lock_guard lock(mutex_);
  throw EngineError(failed_peer_, failed_why_);
}

void LocalGroup::abort(int rank, std::string_view why) {
  fail(rank, why);
  std::vector<std::shared_ptr<LocalGroup>> groups;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, child] : children_)
      if (auto group = child.group.lock()) groups.push_back(std::move(group));
  }
  for (const auto& group : groups) {
    const auto found = std::ranges::find(group->members_, rank);
    if (found != group->members_.end())
      group->abort(static_cast<int>(found - group->members_.begin()), why);
  }
}

void LocalGroup::post(PendingMessage& message) {
  {
    std::lock_guard lock(letters_mutex_);
    messages_.push_back(&message);
  }
  notify();
}

void LocalGroup::take_back(PendingMessage& message) {
  std::lock_guard lock(letters_mutex_);
  messages_.remove(&message);
}

PendingMessage* LocalGroup::find_message(int from, int to, int tag) {
  std::lock_guard lock(letters_mutex_);
  const auto found = std::ranges::find_if(messages_, [&](const PendingMessage* message) {
    return message->from == from && message->to == to && message->tag == tag;
  });
  return found == messages_.end() ? nullptr : *found;
}

std::shared_ptr<LocalGroup> LocalGroup::child(const std::string& id,
                                              const std::vector<int>& members) {
  std::lock_guard lock(mutex_);
  std::erase_if(children_, [](const auto& entry) { return entry.second.group.expired(); });
  auto found = children_.find(id);
  if (found == children_.end()) {
    auto group = std::make_shared<LocalGroup>(members, spins_ > 0);
    found = children_.emplace(id, Child{group, group, group->size()}).first;
  }
  auto group = found->second.group.lock();
  if (--found->second.missing == 0) found->second.forming.reset();
  return group;
}

}  // namespace howmany
