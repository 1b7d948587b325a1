// SPDX-License-Identifier: Apache-2.0
#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"

// Channels are contiguous, so every loop over them is vectorized. Each output pixel is written by
// one thread, from all windows that contain it, so that gradients need no separate zeroing pass.
namespace howmany::onednn {
namespace {

struct Image {
  int64_t h, w, c;
};
Image image_of(const Tensor& t) { return {t.shape()[1], t.shape()[2], t.shape()[3]}; }

struct Span {
  int64_t begin, end;
};
// Returns the rows (or columns) of x in window `index`; x has `extent` of them.
Span taps(int64_t index, int64_t extent, Window w) {
  const int64_t first = index * w.stride - w.padding;
  return {std::max<int64_t>(first, 0), std::min(first + w.size, extent)};
}
// Returns the windows that contain row (or column) `index` of x; there are `count`.
Span windows(int64_t index, int64_t count, Window w) {
  const int64_t reach = index + w.padding - w.size;
  return {reach < 0 ? 0 : reach / w.stride + 1,
          std::min((index + w.padding) / w.stride + 1, count)};
}

HM_SIMD void take_first(const float* __restrict x, int32_t at, int64_t n,
                        int32_t* __restrict chosen, float* __restrict y) {
  for (int64_t c = 0; c < n; ++c) {
    y[c] = x[c];
    chosen[c] = at;
  }
}

HM_SIMD void take_larger(const float* __restrict x, int32_t at, int64_t n,
                         int32_t* __restrict chosen, float* __restrict y) {
  for (int64_t c = 0; c < n; ++c) {
    const bool take = x[c] > y[c] || x[c] != x[c];  // a NaN wins, as in the other backends
    y[c] = take ? x[c] : y[c];
    chosen[c] = take ? at : chosen[c];
  }
}

HM_SIMD void add_where(const float* __restrict dy, const int32_t* __restrict chosen, int32_t at,
                       int64_t n, float* __restrict dx) {
  for (int64_t c = 0; c < n; ++c) dx[c] += chosen[c] == at ? dy[c] : 0;
}

HM_SIMD void add_scaled(const float* __restrict x, float factor, int64_t n, float* __restrict y) {
  for (int64_t c = 0; c < n; ++c) y[c] += factor * x[c];
}

// Calls body(n, row, column) for the pixels of [N,H,W]. Threads divide the rows.
template <class Body>
void for_each_pixel(const Tensor& t, Body&& body) {
  const Image image = image_of(t);
  parallel_for(t.shape()[0] * image.h, image.w * image.c, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t column = 0; column < image.w; ++column)
        body(row / image.h, row % image.h, column);
  });
}

}  // namespace

void OneDnn::max_pool(const Tensor& x, Window window, Tensor& chosen, Tensor& y) const {
  const Image in = image_of(x), out = image_of(y);
  const float* xs = x.data<float>();
  float* ys = y.mutable_data<float>();
  int32_t* winners = chosen.mutable_data<int32_t>();
  for_each_pixel(y, [&](int64_t n, int64_t row, int64_t column) {
    const int64_t to = ((n * out.h + row) * out.w + column) * out.c;
    const Span rows = taps(row, in.h, window), columns = taps(column, in.w, window);
    for (int64_t iy = rows.begin; iy < rows.end; ++iy)
      for (int64_t ix = columns.begin; ix < columns.end; ++ix) {
        const int64_t at = iy * in.w + ix;
        const bool first = iy == rows.begin && ix == columns.begin;
        (first ? take_first : take_larger)(xs + (n * in.h * in.w + at) * in.c,
                                           static_cast<int32_t>(at), in.c, winners + to, ys + to);
      }
  });
}

void OneDnn::max_pool_backward(const Tensor& chosen, const Tensor& dy, Window window,
                               Tensor& dx) const {
  const Image in = image_of(dx), out = image_of(dy);
  const float* dys = dy.data<float>();
  const int32_t* winners = chosen.data<int32_t>();
  float* dxs = dx.mutable_data<float>();
  for_each_pixel(dx, [&](int64_t n, int64_t row, int64_t column) {
    const int64_t at = row * in.w + column;
    float* to = dxs + (n * in.h * in.w + at) * in.c;
    std::fill_n(to, in.c, 0.0F);
    const Span rows = windows(row, out.h, window), columns = windows(column, out.w, window);
    for (int64_t oy = rows.begin; oy < rows.end; ++oy)
      for (int64_t ox = columns.begin; ox < columns.end; ++ox) {
        const int64_t from = ((n * out.h + oy) * out.w + ox) * in.c;
        add_where(dys + from, winners + from, static_cast<int32_t>(at), in.c, to);
      }
  });
}

void OneDnn::avg_pool(const Tensor& x, Window window, Tensor& y) const {
  const Image in = image_of(x), out = image_of(y);
  const float share = 1 / static_cast<float>(window.size * window.size);
  const float* xs = x.data<float>();
  float* ys = y.mutable_data<float>();
  for_each_pixel(y, [&](int64_t n, int64_t row, int64_t column) {
    float* to = ys + ((n * out.h + row) * out.w + column) * out.c;
    std::fill_n(to, out.c, 0.0F);
    const Span rows = taps(row, in.h, window), columns = taps(column, in.w, window);
    for (int64_t iy = rows.begin; iy < rows.end; ++iy)
      for (int64_t ix = columns.begin; ix < columns.end; ++ix)
        add_scaled(xs + ((n * in.h + iy) * in.w + ix) * in.c, share, in.c, to);
  });
}

void OneDnn::avg_pool_backward(const Tensor& dy, Window window, Tensor& dx) const {
  const Image in = image_of(dx), out = image_of(dy);
  const float share = 1 / static_cast<float>(window.size * window.size);
  const float* dys = dy.data<float>();
  float* dxs = dx.mutable_data<float>();
  for_each_pixel(dx, [&](int64_t n, int64_t row, int64_t column) {
    float* to = dxs + ((n * in.h + row) * in.w + column) * in.c;
    std::fill_n(to, in.c, 0.0F);
    const Span rows = windows(row, out.h, window), columns = windows(column, out.w, window);
    for (int64_t oy = rows.begin; oy < rows.end; ++oy)
      for (int64_t ox = columns.begin; ox < columns.end; ++ox)
        add_scaled(dys + ((n * out.h + oy) * out.w + ox) * in.c, share, in.c, to);
  });
}

}  // namespace howmany::onednn
