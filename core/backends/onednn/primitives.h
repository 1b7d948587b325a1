// SPDX-License-Identifier: Apache-2.0
// oneDNN primitives, created once per shape. A run allocates only scratch memory, from the storage
// pool. Thread-safe. A primitive is for the team size of the thread that requests it.
#pragma once

#include <omp.h>

#include <initializer_list>
#include <map>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <shared_mutex>

#include "core/tensor/precision.h"
#include "core/tensor/tensor.h"

namespace howmany::onednn {

using Desc = dnnl::memory::desc;
using FormatTag = dnnl::memory::format_tag;
using DataType = dnnl::memory::data_type;

const dnnl::engine& engine();
// The caller provides scratch memory. If `add`, results are added to what the output holds.
dnnl::primitive_attr attributes(bool add = false);
Desc f32_desc(const dnnl::memory::dims& extents, FormatTag tag);
bool multiplies_bf16();  // on this CPU, unless ONEDNN_MAX_CPU_ISA forbids it
// The type of inputs of products: bf16 if the thread's precision is and multiplies_bf16(), else
// f32.
DataType product_type();

struct Argument {
  int name;  // DNNL_ARG_...
  const void* data;
};

// A primitive and the memory layouts that it requires.
class Kernel {
 public:
  Kernel() = default;
  template <class PrimitiveDesc>
  explicit Kernel(const PrimitiveDesc& desc) : desc_(desc), primitive_(desc.get()) {}

  Desc desc(int argument) const { return desc_.query_md(dnnl::query::exec_arg_md, argument); }
  // Skips arguments without data. On a meta device it only allocates the scratch memory.
  void run(std::initializer_list<Argument> arguments, Device device = {}) const;

 private:
  dnnl::primitive_desc_base desc_;
  dnnl::primitive primitive_;
};

// A change of memory layout or data type. Does nothing if both layouts are equal.
class Reorder {
 public:
  Reorder() = default;
  Reorder(const Desc& from, const Desc& to, bool add = false);

  bool identity() const { return identity_; }
  const Desc& to() const { return to_; }
  void run(const void* from, void* to, Device device) const;
  Tensor run(const Tensor& from) const;  // returns `from` if both layouts are equal

 private:
  bool identity_ = true;
  Desc to_;
  Kernel kernel_;
};

// Returns the weight as `pack` writes it. Caches it with the weight until the weight changes.
Tensor packed(const Tensor& weight, const Reorder& pack);

// Entries by key, never evicted: a run uses few shapes. Key is an aggregate with <=> that includes
// the team size.
template <class Key, class Entry>
class Cache {
 public:
  const Entry& get(const Key& key) {
    {
      std::shared_lock lock(mutex_);
      if (const auto found = entries_.find(key); found != entries_.end()) return found->second;
    }
    Entry made(key);
    std::unique_lock lock(mutex_);
    return entries_.try_emplace(key, std::move(made)).first->second;
  }

  // Leaked: oneDNN's own statics may be destroyed before ours.
  static Cache& instance() {
    static Cache* const cache = new Cache;
    return *cache;
  }

 private:
  std::shared_mutex mutex_;
  std::map<Key, Entry> entries_;
};

template <class Entry, class Key>
const Entry& cached(const Key& key) {
  return Cache<Key, Entry>::instance().get(key);
}

}  // namespace howmany::onednn
