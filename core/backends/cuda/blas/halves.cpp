// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/blas/halves.h"

#include <memory>
#include <mutex>
#include <utility>

#include "core/backends/cuda/graph/capture.h"

namespace howmany::cuda {
namespace {

int64_t padded(int64_t columns) { return (columns + kPad - 1) / kPad * kPad; }

int64_t place_in(const Tensor& whole, const Matrix& m) {
  const auto bytes = static_cast<const char*>(m.data) - static_cast<const char*>(whole.raw());
  return bytes / static_cast<int64_t>(size_of(whole.dtype()));
}

Tensor room_for(int64_t elements, Device device) {
  return Tensor::empty({elements}, Dtype::bf16, device);
}

// The layout of a copy: dense, or with padded rows.
struct Rows {
  explicit Rows(int64_t stride) : row(stride % kPad == 0 ? 0 : stride), to(padded(row)) {}
  int64_t position(int64_t element) const {
    return row == 0 ? element : element / row * to + element % row;
  }
  // Returns true if each row of the matrix is within a row of this layout, at a constant stride.
  bool suit(const Matrix& m, int64_t first, int64_t all) const {
    return row == 0 || (all % row == 0 && first % row + m.columns <= row &&
                        (m.batch == 1 || m.apart % row == 0));
  }
  int64_t row, to;
};

// The cached copy of a tensor, or of the part of it that was used first.
class Kept : public std::enable_shared_from_this<Kept> {
 public:
  Half half_of(const Matrix& m, const Tensor& whole, Rows rows, const OnDevice& on) {
    const Stamp now{whole.version(), epoch(whole.device().index)};
    const std::lock_guard lock(mutex_);
    if (!lent_to_capture(whole, rows)) {
      const bool good = stamp_ == now && row_ == rows.row && elements_ >= whole.numel();
      if (!good) make(whole, rows, on);
      stamp_ = now;
    }
    const Bf16* const halves = std::as_const(room_).data<Bf16>();
    return {room_, halves + rows.position(place_in(whole, m)), rows.row == 0 ? m.stride : rows.to,
            rows.position(m.apart)};
  }

  Bf16* written_with(const Tensor& whole) {
    const std::lock_guard lock(mutex_);
    if (!is_all_of(whole)) return nullptr;
    stamp_ = {whole.version(), epoch(whole.device().index)};
    written_ = true;
    return room_.mutable_data<Bf16>();
  }

 private:
  struct Stamp {
    uint64_t version = 0, epoch = 0;
    bool operator==(const Stamp&) const = default;
  };

  bool is_all_of(const Tensor& whole) const { return row_ == 0 && elements_ == whole.numel(); }

  // Returns true if a capture may use the copy that the optimizer writes between launches. Then the
  // graph does not make one.
  bool lent_to_capture(const Tensor& whole, Rows rows) {
    const bool good = written_ && rows.row == 0 && is_all_of(whole) &&
                      stamp_ == Stamp{whole.version(), epoch_outside(whole.device().index)};
    if (current_capture == nullptr || !good) return false;
    current_capture->before.try_emplace(
        this,
        [self = shared_from_this(), whole, room = room_]() mutable { self->renew(whole, room); });
    return true;
  }

  // Runs before a launch. Makes the copy again if something other than the optimizer changed the
  // values.
  void renew(const Tensor& whole, Tensor& room) {
    const std::lock_guard lock(mutex_);
    const bool good = is_all_of(whole) && room_.raw() == room.raw() &&
                      stamp_ == Stamp{whole.version(), epoch_outside(whole.device().index)};
    if (!good) cast(whole, Rows(0), room, OnDevice(whole));
  }

  static void cast(const Tensor& whole, Rows rows, Tensor& room, const OnDevice& on) {
    const int64_t columns = rows.row == 0 ? whole.numel() : rows.row;
    cast_to_halves({.data = whole.raw(),
                    .rows = whole.numel() / columns,
                    .columns = columns,
                    .stride = columns,
                    .dtype = whole.dtype()},
                   room.mutable_data<Bf16>(), rows.row == 0 ? columns : rows.to, on);
  }

  // Reuses the memory if it is large enough: earlier readers are already enqueued.
  void make(const Tensor& whole, Rows rows, const OnDevice& on) {
    const int64_t elements = rows.position(whole.numel());
    stamp_ = {};
    if (!room_ || room_.numel() < elements) room_ = room_for(elements, whole.device());
    cast(whole, rows, room_, on);
    row_ = rows.row;
    elements_ = whole.numel();
    written_ = false;
  }

  std::mutex mutex_;
  Tensor room_;
  int64_t row_ = 0, elements_ = 0;
  bool written_ = false;  // the optimizer writes the copy together with the tensor
  Stamp stamp_;
};

std::shared_ptr<Kept> kept_of(const Tensor& whole) {
  auto kept = std::static_pointer_cast<Kept>(whole.attachment());
  if (kept) return kept;
  kept = std::make_shared<Kept>();
  whole.set_attachment(kept);
  return kept;
}

Half fresh(const Matrix& m, Device device, const OnDevice& on) {
  const int64_t stride = padded(m.columns);
  Tensor room = room_for(m.batch * m.rows * stride, device);
  cast_to_halves(m, room.mutable_data<Bf16>(), stride, on);
  return {room, room.raw(), stride, m.rows * stride};
}

}  // namespace

Half half_of(const Matrix& m, const Tensor* whole, Device device, const OnDevice& on) {
  const Rows rows(m.stride);
  if (m.dtype == Dtype::bf16 && rows.row == 0)
    return {whole == nullptr ? Tensor() : *whole, m.data, m.stride, m.apart};
  if (whole == nullptr || !rows.suit(m, place_in(*whole, m), whole->numel()))
    return fresh(m, device, on);
  return kept_of(*whole)->half_of(m, *whole, rows, on);
}

Half half_of(const Tensor& t, const OnDevice& on) {
  return half_of({.data = t.raw(), .rows = 1, .columns = t.numel(), .dtype = t.dtype()}, &t,
                 t.device(), on);
}

Bf16* kept_half_of(const Tensor& changed) {
  const auto kept = std::static_pointer_cast<Kept>(changed.attachment());
  return kept ? kept->written_with(changed) : nullptr;
}

}  // namespace howmany::cuda
