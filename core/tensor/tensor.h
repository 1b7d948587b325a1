// A Tensor is a handle (shape, dtype, device, offset) to shared storage: copying shares, clone()
// copies, view() and rows() share. Always row-major and contiguous. Not thread-safe to mutate;
// handles may be copied from any thread.
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
  // Over somebody else's memory of that device, aligned for the dtype, kept as long as it is used.
  static Tensor over(std::shared_ptr<void> memory, const Shape& shape, Dtype dtype,
                     Device device = {});
  template <typename T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, Device device = {});

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  Dtype dtype() const { return dtype_; }
  Device device() const { return device_; }
  int64_t numel() const { return numel_; }
  int64_t bytes() const { return numel_ * static_cast<int64_t>(size_of(dtype_)); }

  // Pointers to the first element, on the tensor's device; T must be the dtype. mutable_data marks
  // the storage changed (see version).
  template <typename T>
  const T* data() const;
  template <typename T>
  T* mutable_data();
  const void* raw() const;
  void* mutable_raw();
  // The elements themselves: of a tensor on the host.
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
  double item() const;  // the only element, as double

  Tensor view(const Shape& shape) const;          // same elements, same storage
  Tensor rows(int64_t begin, int64_t end) const;  // extent 0 in [begin, end), same storage
  Tensor flat(int64_t begin,
              int64_t end) const;  // elements [begin, end) as one extent, same storage
  Tensor clone() const;
  Tensor to(Device device) const;        // this handle when already there, else a copy
  Tensor to(Dtype dtype) const;          // converted copy, or this handle
  void copy_from(const Tensor& source);  // same numel and dtype, any devices
  void zero();

  bool shares_storage_with(const Tensor& other) const { return storage_ == other.storage_; }
  // Grows whenever the storage is handed out for writing: lets a backend keep a packed copy of a
  // weight.
  uint64_t version() const;
  // One opaque slot per (storage, offset) where a backend keeps such a copy; freed with the
  // storage. Thread-safe.
  std::shared_ptr<void> attachment() const;
  void set_attachment(std::shared_ptr<void> value) const;

 private:
  void check_dtype(Dtype wanted) const;
  void check_host() const;

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  int64_t numel_ = 0;
  int64_t offset_ = 0;  // elements
  Dtype dtype_ = Dtype::f32;
  Device device_;
};

template <typename T>
const T* Tensor::data() const {
  check_dtype(dtype_of<T>());
  return static_cast<const T*>(raw());
}

template <typename T>
T* Tensor::mutable_data() {
  check_dtype(dtype_of<T>());
  return static_cast<T*>(mutable_raw());
}

Tensor from_bytes(const void* bytes, const Shape& shape, Dtype dtype, Device device);

template <typename T>
Tensor Tensor::from(const std::vector<T>& values, const Shape& shape, Device device) {
  if (static_cast<int64_t>(values.size()) != shape.numel())
    throw std::invalid_argument("[tensor] " + std::to_string(values.size()) + " values for shape " +
                                shape.str());
  return from_bytes(values.data(), shape, dtype_of<T>(), device);
}

}  // namespace howmany
