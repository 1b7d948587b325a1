// SPDX-License-Identifier: Apache-2.0
// A Tensor is a handle (shape, dtype, device, offset) to shared storage. Copies, view() and rows()
// share the storage; clone() copies it. Elements are always row-major and contiguous.
//
// Thread safety. Handles may be copied from any thread. Elements must not be written concurrently
//   with other accesses.
//
//   Tensor x = Tensor::zeros({2, 3});
//   x.mutable_data<float>()[0] = 1;
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/tensor/device.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace howmany {

class Storage;

class Tensor {
 public:
  Tensor() = default;  // no storage: `if (!t)`

  static Tensor empty(const Shape& shape, Dtype dtype = Dtype::f32, Device device = {});
  static Tensor zeros(const Shape& shape, Dtype dtype = Dtype::f32, Device device = {});
  static Tensor full(const Shape& shape, double value, Dtype dtype = Dtype::f32,
                     Device device = {});
  // Wraps memory of `device` that the caller allocated, aligned for the dtype. Shares its
  // ownership.
  static Tensor over(std::shared_ptr<void> memory, const Shape& shape, Dtype dtype,
                     Device device = {});
  template <typename T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, Device device = {}) {
    return from_bytes(values.data(), values.size(), shape, dtype_of<T>(), device);
  }

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  Dtype dtype() const { return dtype_; }
  Device device() const { return device_; }
  int64_t numel() const { return numel_; }
  int64_t bytes() const { return numel_ * static_cast<int64_t>(size_of(dtype_)); }

  // Pointers to the first element, in memory of the tensor's device. Throws std::invalid_argument
  // if T is not the dtype. mutable_data() increments version().
  template <typename T>
  const T* data() const {
    check_dtype(dtype_of<T>());
    return static_cast<const T*>(raw());
  }
  template <typename T>
  T* mutable_data() {
    check_dtype(dtype_of<T>());
    return static_cast<T*>(mutable_raw());
  }
  const void* raw() const;
  void* mutable_raw();
  // The elements. Throws std::invalid_argument if the tensor is on a GPU.
  template <typename T>
  std::span<const T> values() const {
    check_host();
    return {data<T>(), static_cast<size_t>(numel_)};
  }
  template <typename T>
  std::span<T> mutable_values() {
    check_host();
    return {mutable_data<T>(), static_cast<size_t>(numel_)};
  }
  double item() const;  // the only element; copies it from a GPU, which blocks the host

  // These share the storage.
  Tensor view(const Shape& shape) const;          // the same elements
  Tensor rows(int64_t begin, int64_t end) const;  // extent 0 in [begin, end)
  Tensor flat(int64_t begin, int64_t end) const;  // elements [begin, end) as one extent
  Tensor clone() const;
  Tensor to(Device device) const;        // this handle if already there, else a copy
  Tensor to(Dtype dtype) const;          // this handle if the dtype is equal, else a copy
  void copy_from(const Tensor& source);  // same numel and dtype; any devices
  // Copies elements [from, from + count) of each row (extent 0) of `source` to elements
  // [to, to + count) of that row. Requires the same number of rows, dtype and device, and another
  // storage. On a GPU this is one copy, not one per row.
  void copy_columns(int64_t to, const Tensor& source, int64_t from, int64_t count);
  void zero();

  bool shares_storage_with(const Tensor& other) const { return storage_ == other.storage_; }
  // Increases each time the storage is accessed for writing. Backends use it to validate a cached
  // copy of a weight, such as a packed one.
  uint64_t version() const;
  // One opaque slot per (storage, offset), for such cached copies. Freed with the storage.
  // Thread-safe.
  std::shared_ptr<void> attachment() const;
  void set_attachment(std::shared_ptr<void> value) const;

 private:
  static Tensor from_bytes(const void* bytes, size_t count, const Shape& shape, Dtype dtype,
                           Device device);
  void check_dtype(Dtype wanted) const;
  void check_host() const;

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  int64_t numel_ = 0;
  int64_t offset_ = 0;  // elements
  Dtype dtype_ = Dtype::f32;
  Device device_;
};

// Rounds up, so that the next of several flat parts of f32 or wider starts a cache line, as a
// tensor does.
constexpr int64_t aligned_numel(int64_t numel) { return (numel + 15) / 16 * 16; }

}  // namespace howmany
