// oneDNN primitives, made once per shape and run without allocating: scratch memory comes from the
// storage pool. Thread-safe; a primitive is made for the team size of the thread that asks.
#pragma once

#include <omp.h>

#include <initializer_list>
#include <map>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <shared_mutex>
#include <vector>

#include "core/tensor/tensor.h"

namespace howmany::onednn {

using Desc = dnnl::memory::desc;
using FormatTag = dnnl::memory::format_tag;

const dnnl::engine& engine();
dnnl::primitive_attr attributes();  // scratch memory is the caller's
Desc f32_desc(const dnnl::memory::dims& extents, FormatTag tag);

struct Argument {
  int name;  // DNNL_ARG_...
  const void* data;
};

// A primitive and the layouts it wants.
class Kernel {
 public:
  Kernel() = default;
  template <class PrimitiveDesc>
  explicit Kernel(const PrimitiveDesc& desc) : desc_(desc), primitive_(desc.get()) {}

  Desc desc(int argument) const { return desc_.query_md(dnnl::query::exec_arg_md, argument); }
  void run(std::initializer_list<Argument> arguments) const;  // absent ones (null) are left out

 private:
  dnnl::primitive_desc_base desc_;
  dnnl::primitive primitive_;
};

// A change of layout; nothing when both are the same.
class Reorder {
 public:
  Reorder() = default;
  Reorder(const Desc& from, const Desc& to, bool add = false);

  bool identity() const { return identity_; }
  const Desc& to() const { return to_; }
  void run(const void* from, void* to) const;
  Tensor run(const Tensor& from) const;  // `from` itself when nothing changes

 private:
  bool identity_ = true;
  Desc to_;
  Kernel kernel_;
};

// The weight in the layout `pack` makes, kept beside it until its value changes.
Tensor packed(const Tensor& weight, const Reorder& pack);

// What was made for a key, for good: a run meets a handful of shapes. Key is an aggregate with <=>
// that includes the team size.
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

  // Leaked on purpose: oneDNN's own statics may be gone before ours.
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
