#include <algorithm>

#include "core/backends/cuda/blas.h"
#include "core/backends/cuda/columns.cuh"
#include "core/backends/cuda/cuda.h"
#include "core/backends/cuda/dnn.h"

// By cuDNN, or as a product with the columns of x: row (n, oy, ox) of [rows, taps C] holds what the
// window there sees, zeros where that is padding. Images are taken a few at a time, so that their
// columns fit. Where x is its own columns the product is all there is to do, and cuDNN not asked.
namespace howmany::backends {
namespace {

using cuda::Divisor;
using cuda::each;
using cuda::OnDevice;
using cuda::Pair;

constexpr int64_t kMostColumns = int64_t{64} << 20;  // elements: 256 MiB

struct Conv : cuda::Convolution {
  Conv(const Tensor& x, const Tensor& w, const Shape& y, Window at)
      : Convolution{x.shape()[0], x.shape()[1], x.shape()[2], x.shape()[3],
                    w.shape()[0], y[1],         y[2],         at} {}
  int64_t pixels() const { return out_height * out_width; }  // of an image of y
  int64_t depth() const { return window.size * window.size * channels; }
  bool plain() const { return window.size == 1 && window.stride == 1 && window.padding == 0; }
  int64_t images_at_once() const {
    return std::clamp<int64_t>(kMostColumns / std::max<int64_t>(pixels() * depth(), 1), 1, images);
  }
};

int64_t size_of(Window w) { return w.size * w.size; }

void fill_columns(const Conv& conv, const float* x, int64_t images, float* columns,
                  const OnDevice& on) {
  const Divisor channels(conv.channels), size(conv.window.size), taps(size_of(conv.window)),
      out_width(conv.out_width), out_height(conv.out_height);
  each(images * conv.pixels() * conv.depth(), on, [=] __device__(int64_t i) {
    const Window w = conv.window;
    const int64_t c = channels.rest(i), row_tap = channels(i), tap = taps.rest(row_tap);
    const int64_t row = taps(row_tap), line = out_width(row);
    const int64_t ox = out_width.rest(row), oy = out_height.rest(line), n = out_height(line);
    const int64_t iy = oy * w.stride - w.padding + size(tap);
    const int64_t ix = ox * w.stride - w.padding + size.rest(tap);
    const bool inside = iy >= 0 && iy < conv.height && ix >= 0 && ix < conv.width;
    const int64_t at = ((n * conv.height + iy) * conv.width + ix) * conv.channels + c;
    columns[i] = inside ? x[at] : 0;
  });
}

// Each element of dx gathers from the windows that see it: no two threads write one place.
void sum_columns(const Conv& conv, const float* columns, int64_t images, float* dx,
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
    dx[i] = sum;
  });
}

// f(first image, how many) over all of them.
template <typename F>
void for_images(const Conv& conv, F f) {
  for (int64_t first = 0; first < conv.images; first += conv.images_at_once())
    f(first, std::min(conv.images_at_once(), conv.images - first));
}

Tensor room_for_columns(const Conv& conv, const Tensor& x) {
  if (conv.plain() || conv.images == 0) return {};
  return Tensor::empty({conv.images_at_once() * conv.pixels(), conv.depth()}, x.dtype(),
                       x.device());
}

// The columns of these images: x itself where that is all they are.
cuda::Operand columns_of(const Conv& conv, const Tensor& x, int64_t first, int64_t images,
                         Tensor& room, const OnDevice& on) {
  const float* const from = x.data<float>() + first * x.shape().row_numel();
  if (conv.plain()) return {from, &x};
  fill_columns(conv, from, images, room.mutable_data<float>(), on);
  return room.data<float>();
}

void add_to_rows(const float* bias, Tensor& y, const OnDevice& on) {
  float* const ys = y.mutable_data<float>();
  const Divisor columns(y.shape()[-1]);
  each(y.numel(), on, [=] __device__(int64_t i) { ys[i] += bias[columns.rest(i)]; });
}

// The bias rides along where an engine takes it.
bool forward_by_dnn(const Conv& conv, const Tensor& x, const Tensor& w, const float* bias,
                    Tensor& y, const OnDevice& on) {
  if (conv.plain()) return false;
  if (cuda::dnn_forward(conv, x, w, bias, y, on)) return true;
  if (bias == nullptr || !cuda::dnn_forward(conv, x, w, nullptr, y, on)) return false;
  add_to_rows(bias, y, on);
  return true;
}

// What is still to be computed of a convolution's gradients.
struct Wanted {
  bool dx, dw;
};

// To be added to, dw is made apart: engines are tried on what they write.
Wanted backward_by_dnn(const Cuda& backend, const Conv& conv, const Tensor& x, const Tensor& w,
                       const Tensor& dy, Tensor& dx, GradOut& dw, const OnDevice& on) {
  Wanted left{static_cast<bool>(dx), static_cast<bool>(dw.value)};
  if (conv.plain()) return left;
  if (left.dw) {
    Tensor made = dw.accumulate ? Tensor::empty(w.shape(), w.dtype(), w.device()) : dw.value;
    left.dw = !cuda::dnn_backward_filter(conv, x, dy, made, on);
    if (!left.dw && dw.accumulate) backend.axpy(1, made, dw.value);
  }
  if (left.dx) left.dx = !cuda::dnn_backward_data(conv, w, dy, dx, on);
  return left;
}

void backward_by_columns(const Conv& conv, const Tensor& x, const Tensor& w, const Tensor& dy,
                         Wanted wanted, Tensor& dx, GradOut& dw, const OnDevice& on) {
  Tensor room = room_for_columns(conv, x);
  for_images(conv, [&](int64_t first, int64_t images) {
    const cuda::Operand dys(dy.data<float>() + first * dy.shape().row_numel(), &dy);
    const int64_t rows = images * conv.pixels();
    if (wanted.dw)
      cuda::multiply({.a = dys,
                      .b = columns_of(conv, x, first, images, room, on),
                      .y = dw.value.mutable_data<float>(),
                      .m = conv.out,
                      .n = conv.depth(),
                      .k = rows,
                      .transpose_a = true,
                      .accumulate = dw.accumulate || first > 0},
                     x.device().index);
    if (!wanted.dx) return;
    float* const to = dx.mutable_data<float>() + first * x.shape().row_numel();
    cuda::multiply({.a = dys,
                    .b = w,
                    .y = conv.plain() ? to : room.mutable_data<float>(),
                    .m = rows,
                    .n = conv.depth(),
                    .k = conv.out},
                   x.device().index);
    if (!conv.plain()) sum_columns(conv, room.data<float>(), images, to, on);
  });
}

}  // namespace

void Cuda::conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, Window window,
                  Tensor& y) const {
  const OnDevice on(x);
  const Conv conv(x, w, y.shape(), window);
  const float* const shift = bias ? bias.data<float>() : nullptr;
  if (forward_by_dnn(conv, x, w, shift, y, on)) return;
  Tensor room = room_for_columns(conv, x);
  float* const ys = y.mutable_data<float>();
  for_images(conv, [&](int64_t first, int64_t images) {
    cuda::multiply({.a = columns_of(conv, x, first, images, room, on),
                    .b = w,
                    .y = ys + first * y.shape().row_numel(),
                    .m = images * conv.pixels(),
                    .n = conv.out,
                    .k = conv.depth(),
                    .transpose_b = true,
                    .bias = shift},
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
  if (!dbias.value) return;
  const int64_t out = conv.out;
  const float* const d = dy.data<float>();
  const cuda::Slot slot = cuda::slot_of(dbias);
  cuda::reduce_columns(
      conv.images * conv.pixels(), out, x.device(), on,
      [=] __device__(int64_t row, int64_t o) {
        return Pair{d[row * out + o], 0};
      },
      [=] __device__(int64_t o, cuda::Sums sum) { slot.put(o, sum.a); });
}

}  // namespace howmany::backends
