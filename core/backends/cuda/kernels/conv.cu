// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/backends/cuda/blas/blas.h"
#include "core/backends/cuda/blas/halves.h"
#include "core/backends/cuda/dnn/dnn.h"
#include "core/backends/cuda/kernels/bias.h"
#include "core/backends/cuda/kernels/pack.cuh"
#include "core/backends/cuda/runtime/cuda.h"
#include "core/gpu/gpu.h"
#include "core/tensor/precision.h"

// Convolution by cuDNN, or as a product with the columns of x (im2col).
//
// Columns. Row (n, oy, ox) of [rows, taps C] has the inputs of that window, with zeros as padding.
//   A few images are processed at a time, so that their columns fit.
// Dtypes. Columns have the dtype of x, with bf16 rows padded for products. Their gradients are f32.
// Plain. If x equals its columns (1x1 windows), only the product is needed and cuDNN is not used.
namespace howmany::backends {
namespace {

using cuda::Divisor;
using cuda::each;
using cuda::OnDevice;

constexpr int64_t kMaxColumns = int64_t{64} << 20;  // elements: 256 MiB of f32

struct Conv : cuda::Convolution {
  Conv(const Tensor& x, const Tensor& w, const Shape& y, Window at)
      : Convolution{x.shape()[0], x.shape()[1], x.shape()[2], x.shape()[3],
                    w.shape()[0], y[1],         y[2],         at} {}
  int64_t pixels() const { return out_height * out_width; }  // per image of y
  int64_t depth() const { return window.size * window.size * channels; }
  int64_t row_stride(Dtype columns) const {
    if (plain() || columns != Dtype::bf16) return depth();
    return (depth() + cuda::kPad - 1) / cuda::kPad * cuda::kPad;
  }
  bool plain() const { return window.size == 1 && window.stride == 1 && window.padding == 0; }
  int64_t images_at_once() const {
    return std::clamp<int64_t>(kMaxColumns / std::max<int64_t>(pixels() * depth(), 1), 1, images);
  }
};

int64_t size_of(Window w) { return w.size * w.size; }

template <typename T>
void fill_columns(const Conv& conv, const T* x, int64_t images, T* columns, const OnDevice& on) {
  const Divisor channels(conv.channels), size(conv.window.size), taps(size_of(conv.window)),
      out_width(conv.out_width), out_height(conv.out_height);
  const int64_t padding = conv.row_stride(dtype_of<T>()) - conv.depth();
  each(images * conv.pixels() * conv.depth(), on, [=] __device__(int64_t i) {
    const Window w = conv.window;
    const int64_t c = channels.rest(i), row_tap = channels(i), tap = taps.rest(row_tap);
    const int64_t row = taps(row_tap), line = out_width(row);
    const int64_t ox = out_width.rest(row), oy = out_height.rest(line), n = out_height(line);
    const int64_t iy = oy * w.stride - w.padding + size(tap);
    const int64_t ix = ox * w.stride - w.padding + size.rest(tap);
    const bool inside = iy >= 0 && iy < conv.height && ix >= 0 && ix < conv.width;
    const int64_t at = ((n * conv.height + iy) * conv.width + ix) * conv.channels + c;
    columns[i + row * padding] = inside ? x[at] : T{};
  });
}

// Each element of dx gathers from the windows that contain it, so no two threads write an element.
template <typename T>
void sum_columns(const Conv& conv, const float* columns, int64_t images, T* dx,
                 const OnDevice& on) {
  const Divisor channels(conv.channels), width(conv.width), height(conv.height),
      stride(conv.window.stride);
  each(images * conv.height * conv.width * conv.channels, on, [=] __device__(int64_t i) {
    const Window w = conv.window;
    const int64_t c = channels.rest(i), pixel = channels(i), line = width(pixel);
    const int64_t ix = width.rest(pixel), iy = height.rest(line), n = height(line);
    float sum = 0;
    for (int64_t down = 0; down < w.size; ++down) {
      const int64_t y = iy + w.padding - down, oy = y < 0 ? -1 : stride(y);
      if (y < 0 || oy * w.stride != y || oy >= conv.out_height) continue;
      for (int64_t right = 0; right < w.size; ++right) {
        const int64_t x = ix + w.padding - right, ox = x < 0 ? -1 : stride(x);
        if (x < 0 || ox * w.stride != x || ox >= conv.out_width) continue;
        const int64_t row = (n * conv.out_height + oy) * conv.out_width + ox;
        sum += columns[((row * w.size + down) * w.size + right) * conv.channels + c];
      }
    }
    dx[i] = cuda::rounded<T>(sum);
  });
}

// Calls f(first image, number of images) for chunks of all images.
template <typename F>
void for_images(const Conv& conv, F f) {
  for (int64_t first = 0; first < conv.images; first += conv.images_at_once())
    f(first, std::min(conv.images_at_once(), conv.images - first));
}

Tensor room_for_columns(const Conv& conv, Dtype dtype, Device device) {
  if (conv.plain() || conv.images == 0) return {};
  return Tensor::empty({conv.images_at_once() * conv.pixels(), conv.row_stride(dtype)}, dtype,
                       device);
}

// Returns the offset in bytes of image `first`.
int64_t bytes_before(const Tensor& x, int64_t first) {
  return first * x.shape().row_numel() * static_cast<int64_t>(size_of(x.dtype()));
}
cuda::Operand read_from(const Tensor& x, int64_t first) {
  return {static_cast<const char*>(x.raw()) + bytes_before(x, first), x.dtype(), &x};
}
cuda::Result write_from(Tensor& y, int64_t first) {
  return {static_cast<char*>(y.mutable_raw()) + bytes_before(y, first), y.dtype()};
}

// Returns the columns of these images, or x itself if the convolution is plain.
cuda::Operand columns_of(const Conv& conv, const Tensor& x, int64_t first, int64_t images,
                         Tensor& room, const OnDevice& on) {
  const cuda::Operand from = read_from(x, first);
  if (conv.plain()) return from;
  cuda::by_element(x.dtype(), [&](auto e) {
    using T = decltype(e);
    fill_columns(conv, static_cast<const T*>(from.data), images, room.mutable_data<T>(), on);
  });
  return {room.raw(), room.dtype()};
}

template <typename T>
void add_to_rows(const float* bias, Tensor& y, const OnDevice& on) {
  T* const ys = y.mutable_data<T>();
  const Divisor columns(y.shape()[-1]);
  each(y.numel(), on, [=] __device__(int64_t i) {
    ys[i] = cuda::rounded<T>(static_cast<float>(ys[i]) + bias[columns.rest(i)]);
  });
}

// The bias is fused if an engine supports it.
bool forward_by_dnn(const Conv& conv, const Tensor& x, const Tensor& w, const float* bias,
                    Tensor& y, const OnDevice& on) {
  if (conv.plain()) return false;
  if (cuda::dnn_forward(conv, x, w, bias, y, on)) return true;
  if (bias == nullptr || !cuda::dnn_forward(conv, x, w, nullptr, y, on)) return false;
  cuda::by_element(y.dtype(), [&](auto e) { add_to_rows<decltype(e)>(bias, y, on); });
  return true;
}

// The gradients of a convolution that are still to be computed.
struct Wanted {
  bool dx, dw;
};

// Returns the tensor into which cuDNN writes dw. For bf16 inputs it is bf16, with sums in f32, as
// in PyTorch's autocast: for an f32 result cuDNN has only a slow engine, and none for three
// channels. It is also separate if dw is accumulated, because measuring engines overwrites their
// output.
Tensor room_for_dw(const Tensor& x, const Tensor& dy, const Tensor& w, const GradOut& dw) {
  const bool halves = x.dtype() == Dtype::bf16 || dy.dtype() == Dtype::bf16 ||
                      current_precision() == Precision::bf16;
  if (halves) return Tensor::empty(w.shape(), Dtype::bf16, w.device());
  return dw.accumulate ? Tensor::empty(w.shape(), w.dtype(), w.device()) : dw.value;
}

void take_over(const Cuda& backend, const Tensor& made, GradOut& dw) {
  if (made.raw() == dw.value.raw()) return;
  if (dw.accumulate) return backend.axpy(1, made.to(Dtype::f32), dw.value);
  gpu::convert(dw.value.mutable_raw(), Dtype::f32, made.raw(), made.dtype(), made.numel(),
               made.device().index);
}

Wanted backward_by_dnn(const Cuda& backend, const Conv& conv, const Tensor& x, const Tensor& w,
                       const Tensor& dy, Tensor& dx, GradOut& dw, const OnDevice& on) {
  Wanted left{static_cast<bool>(dx), static_cast<bool>(dw.value)};
  if (conv.plain()) return left;
  if (left.dw) {
    Tensor made = room_for_dw(x, dy, w, dw);
    left.dw = !cuda::dnn_backward_filter(conv, x, dy, made, on);
    if (!left.dw) take_over(backend, made, dw);
  }
  if (left.dx) left.dx = !cuda::dnn_backward_data(conv, w, dy, dx, on);
  return left;
}

void backward_by_columns(const Conv& conv, const Tensor& x, const Tensor& w, const Tensor& dy,
                         Wanted wanted, Tensor& dx, GradOut& dw, const OnDevice& on) {
  Tensor room, droom;
  if (wanted.dw) room = room_for_columns(conv, x.dtype(), x.device());
  if (wanted.dx) droom = room_for_columns(conv, Dtype::f32, x.device());
  for_images(conv, [&](int64_t first, int64_t images) {
    const cuda::Operand dys = read_from(dy, first);
    const int64_t rows = images * conv.pixels();
    if (wanted.dw)
      cuda::multiply({.a = dys,
                      .b = columns_of(conv, x, first, images, room, on),
                      .y = dw.value,
                      .m = conv.out,
                      .n = conv.depth(),
                      .k = rows,
                      .transpose_a = true,
                      .accumulate = dw.accumulate || first > 0,
                      .strides = {.b = conv.row_stride(x.dtype())}},
                     x.device().index);
    if (!wanted.dx) return;
    cuda::multiply({.a = dys,
                    .b = w,
                    .y = conv.plain() ? write_from(dx, first) : cuda::Result(droom),
                    .m = rows,
                    .n = conv.depth(),
                    .k = conv.out},
                   x.device().index);
    if (!conv.plain())
      cuda::by_element(dx.dtype(), [&](auto e) {
        auto* const to = static_cast<decltype(e)*>(write_from(dx, first).data);
        sum_columns(conv, std::as_const(droom).data<float>(), images, to, on);
      });
  });
}

}  // namespace

void Cuda::conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, Window window,
                  Tensor& y) const {
  const OnDevice on(x);
  const Conv conv(x, w, y.shape(), window);
  const float* const shift = bias ? bias.data<float>() : nullptr;
  if (forward_by_dnn(conv, x, w, shift, y, on)) return;
  Tensor room = room_for_columns(conv, x.dtype(), x.device());
  for_images(conv, [&](int64_t first, int64_t images) {
    cuda::multiply({.a = columns_of(conv, x, first, images, room, on),
                    .b = w,
                    .y = write_from(y, first),
                    .m = images * conv.pixels(),
                    .n = conv.out,
                    .k = conv.depth(),
                    .transpose_b = true,
                    .bias = bias ? cuda::Operand(bias) : cuda::Operand(),
                    .strides = {.a = conv.row_stride(x.dtype())}},
                   x.device().index);
  });
}

void Cuda::conv2d_backward(const Tensor& x, const Tensor& w, const Tensor& dy, Window window,
                           Tensor& dx, GradOut& dw, GradOut& dbias) const {
  const OnDevice on(x);
  const Conv conv(x, w, dy.shape(), window);
  if (dw.value && conv.images == 0 && !dw.accumulate) dw.value.zero();
  const Wanted left = backward_by_dnn(*this, conv, x, w, dy, dx, dw, on);
  if (left.dx || left.dw) backward_by_columns(conv, x, w, dy, left, dx, dw, on);
  cuda::bias_gradient(dy, dbias, on);
}

}  // namespace howmany::backends
