// SPDX-License-Identifier: Apache-2.0
// The table behind core/gpu/tuning.h. Thread-safe. Private to core/backends/cuda.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace howmany::cuda {

class Tuning {
 public:
  using Key = std::vector<int64_t>;  // of a problem, with its library and the kind of GPU
  static Tuning& table();

  std::optional<int64_t> find(const Key& key);
  // Returns the choice for the key, which is `choice` unless there was one before.
  int64_t keep(const Key& key, int64_t choice);
  // Grows with every use_tuning(). A problem that sees another value looks up its choice again.
  int64_t generation() const { return generation_; }

  std::vector<int64_t> all();
  void use(const std::map<Key, int64_t>& choices);

 private:
  std::mutex mutex_;
  std::map<Key, int64_t> choices_;
  std::atomic<int64_t> generation_ = 0;
};

enum class TunedLibrary : int64_t { blas, dnn };
// Returns the first values of a key: the library and the GPU's model.
Tuning::Key tuning_key(TunedLibrary library, int device);

}  // namespace howmany::cuda
