// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/runtime/tuning.h"

#include <array>
#include <string>

#include "core/backends/cuda/blas/blas.h"
#include "core/backends/cuda/dnn/dnn.h"
#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "core/gpu/tuning.h"

namespace howmany::cuda {
namespace {

// FNV-1a of the name, which is the same in every process.
int64_t kind_of(int device) {
  struct Kind {
    std::once_flag once;
    int64_t value = 0;
  };
  static auto* const all = new std::array<Kind, 64>;
  Kind& one = all->at(static_cast<size_t>(device));
  std::call_once(one.once, [&] {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : gpu::name(device))
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    one.value = static_cast<int64_t>(hash);
  });
  return one.value;
}

// Reads [length of the key, key ..., choice] ...
std::map<Tuning::Key, int64_t> parsed(std::span<const int64_t> list) {
  std::map<Tuning::Key, int64_t> choices;
  while (!list.empty()) {
    const int64_t length = list.front();
    HM_REQUIRE(length > 0 && static_cast<size_t>(length) < list.size() - 1,
               "[gpu] a list of {} values is no tuning", list.size());
    const auto key = list.subspan(1, static_cast<size_t>(length));
    choices[Tuning::Key(key.begin(), key.end())] = list[key.size() + 1];
    list = list.subspan(key.size() + 2);
  }
  return choices;
}

}  // namespace

Tuning& Tuning::table() {
  static auto* const one = new Tuning;
  return *one;
}

std::optional<int64_t> Tuning::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = choices_.find(key);
  return found == choices_.end() ? std::nullopt : std::optional(found->second);
}

int64_t Tuning::keep(const Key& key, int64_t choice) {
  const std::lock_guard lock(mutex_);
  return choices_.try_emplace(key, choice).first->second;
}

std::vector<int64_t> Tuning::all() {
  const std::lock_guard lock(mutex_);
  std::vector<int64_t> list;
  for (const auto& [key, choice] : choices_) {
    list.push_back(static_cast<int64_t>(key.size()));
    list.insert(list.end(), key.begin(), key.end());
    list.push_back(choice);
  }
  return list;
}

void Tuning::use(const std::map<Key, int64_t>& choices) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, choice] : choices) choices_[key] = choice;
  ++generation_;
}

Tuning::Key tuning_key(TunedLibrary library, int device) {
  return {static_cast<int64_t>(library), kind_of(device)};
}

}  // namespace howmany::cuda

namespace howmany::gpu {

std::vector<int64_t> tuning() { return cuda::Tuning::table().all(); }

void use_tuning(std::span<const int64_t> choices) {
  cuda::Tuning::table().use(cuda::parsed(choices));
  cuda::dnn_use_tuning();
}

std::string tuning_libraries() {
  return fmt::format("{}, {}", cuda::blas_version(), cuda::dnn_version());
}

}  // namespace howmany::gpu
