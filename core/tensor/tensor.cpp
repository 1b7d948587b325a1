// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "core/gpu/graph.h"
#include "core/host/copy.h"
#include "core/profile/range.h"
#include "core/tensor/id_range.h"
#include "core/tensor/storage.h"

namespace howmany {
namespace {

template <typename F>
void dispatch(Dtype dtype, F&& f) {
  switch (dtype) {
#define X(name, type) \
  case Dtype::name:   \
    return f(type{});
    HM_DTYPES(X)
#undef X
  }
}

bool overlap(const void* a, const void* b, int64_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
  return std::max(first, second) - std::min(first, second) < static_cast<uintptr_t>(bytes);
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, int64_t bytes) {
  if (to_device.type == DeviceType::meta || from_device.type == DeviceType::meta) return;
  if (to_device.type != DeviceType::cpu || from_device.type != DeviceType::cpu)
    gpu::copy(to, to_device, from, from_device, bytes);
  else if (overlap(to, from, bytes))
    std::memmove(to, from, static_cast<size_t>(bytes));
  else
    copy_host(to, from, static_cast<size_t>(bytes));
}

void copy_rows(const gpu::Rows& rows, Device device) {
  if (device.type == DeviceType::cuda) return gpu::copy_rows(rows, device.index);
  for (int64_t row = 0; row < rows.rows; ++row)
    copy_host(static_cast<char*>(rows.to) + row * rows.to_pitch,
              static_cast<const char*>(rows.from) + row * rows.from_pitch,
              static_cast<size_t>(rows.bytes));
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, Dtype dtype, Device device) {
  Tensor t;
  t.numel_ = shape.numel();
  int64_t bytes = 0;
  HM_REQUIRE(!__builtin_mul_overflow(t.numel_, static_cast<int64_t>(size_of(dtype)), &bytes),
             "[tensor] {} of {} is too large", shape.str(), name_of(dtype));
  t.shape_ = shape;
  t.dtype_ = dtype;
  t.device_ = device;
  t.storage_ = std::make_shared<Storage>(bytes, device);
  return t;
}

Tensor Tensor::over(std::shared_ptr<void> memory, const Shape& shape, Dtype dtype, Device device) {
  Tensor t;
  t.numel_ = shape.numel();
  t.shape_ = shape;
  t.dtype_ = dtype;
  t.device_ = device;
  t.storage_ = std::make_shared<Storage>(std::move(memory), t.bytes());
  return t;
}

Tensor Tensor::zeros(const Shape& shape, Dtype dtype, Device device) {
  Tensor t = empty(shape, dtype, device);
  t.zero();
  return t;
}

Tensor Tensor::full(const Shape& shape, double value, Dtype dtype, Device device) {
  if (device.type == DeviceType::cuda) return full(shape, value, dtype).to(device);
  Tensor t = empty(shape, dtype, device);
  if (device.type == DeviceType::meta) return t;
  dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    std::ranges::fill(t.mutable_values<T>(), static_cast<T>(value));
  });
  return t;
}

Tensor Tensor::from_bytes(const void* bytes, size_t count, const Shape& shape, Dtype dtype,
                          Device device) {
  HM_REQUIRE(static_cast<int64_t>(count) == shape.numel(), "[tensor] {} values for shape {}", count,
             shape.str());
  Tensor t = Tensor::empty(shape, dtype, device);
  if (t.bytes() > 0) copy_bytes(t.mutable_raw(), device, bytes, {}, t.bytes());
  return t;
}

void Tensor::check_dtype(Dtype wanted) const {
  HM_REQUIRE(dtype_ == wanted, "[tensor] {} {} read as {}", name_of(dtype_), shape_.str(),
             name_of(wanted));
}

void Tensor::check_host() const {
  HM_REQUIRE(device_.type == DeviceType::cpu, "[tensor] {} on {} read on the host: move it first",
             shape_.str(), device_.str());
}

const void* Tensor::raw() const {
  HM_REQUIRE(storage_ != nullptr, "[tensor] empty handle read");
  if (device_.type == DeviceType::cuda && gpu::capturing())
    gpu::keep_for_graph(storage_, storage_->data());
  return static_cast<const char*>(storage_->data()) +
         offset_ * static_cast<int64_t>(size_of(dtype_));
}

void* Tensor::mutable_raw() {
  void* p = const_cast<void*>(raw());
  storage_->touch();
  return p;
}

double Tensor::item() const {
  HM_REQUIRE(numel_ == 1, "[tensor] item() of {}", shape_.str());
  if (device_.type == DeviceType::meta) return 0;
  if (device_.type == DeviceType::cuda) return to(Device{}).item();
  double value = 0;
  dispatch(dtype_, [&](auto zero) { value = static_cast<double>(*data<decltype(zero)>()); });
  return value;
}

Tensor Tensor::view(const Shape& shape) const {
  HM_REQUIRE(shape.numel() == numel_, "[view] {} as {}: {} elements against {}", shape_.str(),
             shape.str(), numel_, shape.numel());
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::rows(int64_t begin, int64_t end) const {
  HM_REQUIRE(shape_.rank() > 0 && 0 <= begin && begin <= end && end <= shape_[0],
             "[rows] [{}, {}) of {}", begin, end, shape_.str());
  Tensor t = *this;
  t.offset_ += begin * shape_.row_numel();
  t.shape_ = shape_.with_rows(end - begin);
  t.numel_ = t.shape_.numel();
  return t;
}

Tensor Tensor::flat(int64_t begin, int64_t end) const {
  return view(Shape{numel_}).rows(begin, end);
}

Tensor Tensor::clone() const {
  Tensor t = empty(shape_, dtype_, device_);
  t.copy_from(*this);
  return t;
}

Tensor Tensor::to(Device device) const {
  if (device == device_) return *this;
  Tensor t = empty(shape_, dtype_, device);
  t.copy_from(*this);
  const bool sent = device_.type == DeviceType::cpu && device.type == DeviceType::cuda;
  if (sent && dtype_ == Dtype::i64) remember_range(t, *this);
  return t;
}

Tensor Tensor::to(Dtype dtype) const {
  if (dtype == dtype_) return *this;
  Tensor t = empty(shape_, dtype, device_);
  if (device_.type == DeviceType::meta) return t;
  if (device_.type == DeviceType::cuda) {
    gpu::convert(t.mutable_raw(), dtype, raw(), dtype_, numel_, device_.index);
    return t;
  }
  dispatch(dtype_, [&](auto from) {
    dispatch(dtype, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      std::ranges::transform(values<From>(), t.mutable_values<To>().begin(),
                             [](From v) { return static_cast<To>(v); });
    });
  });
  return t;
}

void Tensor::copy_from(const Tensor& source) {
  HM_REQUIRE(source.numel_ == numel_ && source.dtype_ == dtype_, "[copy] {} {} into {} {}",
             name_of(source.dtype_), source.shape_.str(), name_of(dtype_), shape_.str());
  if (numel_ == 0) return;
  Range range(Category::copy, "copy", static_cast<uint64_t>(bytes()));
  copy_bytes(mutable_raw(), device_, source.raw(), source.device_, bytes());
}

void Tensor::copy_columns(int64_t to, const Tensor& source, int64_t from, int64_t count) {
  HM_REQUIRE(source.dtype_ == dtype_ && source.device_ == device_ && !shares_storage_with(source) &&
                 source.shape_[0] == shape_[0],
             "[copy] columns of {} {} into {} {}", name_of(source.dtype_), source.shape_.str(),
             name_of(dtype_), shape_.str());
  const int64_t width = shape_.row_numel(), source_width = source.shape_.row_numel();
  HM_REQUIRE(
      count >= 0 && to >= 0 && to + count <= width && from >= 0 && from + count <= source_width,
      "[copy] {} columns from {} of {} to {} of {}", count, from, source_width, to, width);
  if (count == 0 || numel_ == 0 || device_.type == DeviceType::meta) return;
  const auto size = static_cast<int64_t>(size_of(dtype_));
  Range range(Category::copy, "copy", static_cast<uint64_t>(shape_[0] * count * size));
  copy_rows({.to = static_cast<char*>(mutable_raw()) + to * size,
             .to_pitch = width * size,
             .from = static_cast<const char*>(source.raw()) + from * size,
             .from_pitch = source_width * size,
             .bytes = count * size,
             .rows = shape_[0]},
            device_);
}

void Tensor::zero() {
  if (numel_ == 0 || device_.type == DeviceType::meta) return;
  if (device_.type == DeviceType::cuda)
    gpu::zero(mutable_raw(), device_.index, bytes());
  else
    std::memset(mutable_raw(), 0, static_cast<size_t>(bytes()));
}

uint64_t Tensor::version() const { return storage_ ? storage_->version() : 0; }

std::shared_ptr<void> Tensor::attachment() const {
  return storage_ ? storage_->attachment(offset_) : nullptr;
}

void Tensor::set_attachment(std::shared_ptr<void> value) const {
  HM_REQUIRE(storage_ != nullptr, "[tensor] empty handle");
  storage_->set_attachment(offset_, std::move(value));
}

}  // namespace howmany
