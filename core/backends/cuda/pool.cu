#include "core/backends/cuda/cuda.h"
#include "core/backends/cuda/launch.cuh"

// Every thread has one element of what is written and gathers what it needs: nothing is added to
// from two sides, so results are the same each time.
namespace howmany::backends {
namespace {

using cuda::each;
using cuda::OnDevice;

// Where a window of y [N,H',W',C] lies on x [N,H,W,C], and which windows see an element of x.
struct Pool {
  Pool(const Shape& x, const Shape& y, Window at)
      : height(x[1]),
        width(x[2]),
        channels(x[3]),
        out_height(y[1]),
        out_width(y[2]),
        window(at),
        by_channels(channels),
        by_stride(at.stride),
        x_lines(width),
        x_images(height),
        y_lines(out_width),
        y_images(out_height) {}

  struct Place {
    int64_t n, y, x, c;
  };
  __device__ Place in_x(int64_t i) const { return place(i, x_lines, x_images); }
  __device__ Place in_y(int64_t i) const { return place(i, y_lines, y_images); }
  __device__ int64_t at_x(int64_t n, int64_t y, int64_t x, int64_t c) const {
    return ((n * height + y) * width + x) * channels + c;
  }
  __device__ int64_t at_y(int64_t n, int64_t y, int64_t x, int64_t c) const {
    return ((n * out_height + y) * out_width + x) * channels + c;
  }
  // First tap of a window along an axis that is not padding, and the end of those.
  __device__ int64_t begin(int64_t out) const {
    const int64_t at = out * window.stride - window.padding;
    return at < 0 ? 0 : at;
  }
  __device__ int64_t end(int64_t out, int64_t extent) const {
    const int64_t at = out * window.stride - window.padding + window.size;
    return at < extent ? at : extent;
  }
  // visit(y, x) at every tap of the window at `out` that is not padding.
  template <typename Visit>
  __device__ void each_tap(const Place& out, Visit visit) const {
    for (int64_t y = begin(out.y); y < end(out.y, height); ++y)
      for (int64_t x = begin(out.x); x < end(out.x, width); ++x) visit(y, x);
  }
  // Windows [first, last) along an axis that see `in`.
  __device__ int64_t first_window(int64_t in) const {
    const int64_t past = in + window.padding - window.size;
    return past < 0 ? 0 : by_stride(past) + 1;
  }
  __device__ int64_t last_window(int64_t in, int64_t windows) const {
    const int64_t last = by_stride(in + window.padding) + 1;
    return last < windows ? last : windows;
  }
  __device__ Place place(int64_t i, cuda::Divisor lines, cuda::Divisor images) const {
    const int64_t pixel = by_channels(i), line = lines(pixel);
    return {images(line), images.rest(line), lines.rest(pixel), by_channels.rest(i)};
  }

  int64_t height, width, channels, out_height, out_width;
  Window window;
  cuda::Divisor by_channels, by_stride, x_lines, x_images, y_lines, y_images;
};

// dx[i] = factor * sum of dy over the windows that see i and for which `counts`.
template <typename Counts>
void gather_windows(const Pool& pool, const Tensor& dy, Tensor& dx, float factor, Counts counts) {
  const OnDevice on(dy);
  const float* const d = dy.data<float>();
  float* const out = dx.mutable_data<float>();
  each(dx.numel(), on, [=] __device__(int64_t i) {
    const Pool::Place p = pool.in_x(i);
    float sum = 0;
    for (int64_t y = pool.first_window(p.y); y < pool.last_window(p.y, pool.out_height); ++y)
      for (int64_t x = pool.first_window(p.x); x < pool.last_window(p.x, pool.out_width); ++x) {
        const int64_t at = pool.at_y(p.n, y, x, p.c);
        if (counts(at, p)) sum += d[at];
      }
    out[i] = factor * sum;
  });
}

struct Always {
  __device__ bool operator()(int64_t, const Pool::Place&) const { return true; }
};

struct IsChosen {
  const int32_t* chosen;
  int64_t width;
  __device__ bool operator()(int64_t at, const Pool::Place& p) const {
    return chosen[at] == p.y * width + p.x;
  }
};

float share_of(Window window) {
  return static_cast<float>(1 / static_cast<double>(window.size * window.size));
}

}  // namespace

void Cuda::max_pool(const Tensor& x, Window window, Tensor& chosen, Tensor& y) const {
  const OnDevice on(x);
  const Pool pool(x.shape(), y.shape(), window);
  const float* const xs = x.data<float>();
  float* const ys = y.mutable_data<float>();
  int32_t* const winners = chosen.mutable_data<int32_t>();
  each(y.numel(), on, [=] __device__(int64_t i) {
    const Pool::Place p = pool.in_y(i);
    int32_t winner = -1;
    float best = 0;
    pool.each_tap(p, [&](int64_t iy, int64_t ix) {
      const float value = xs[pool.at_x(p.n, iy, ix, p.c)];
      if (winner >= 0 && !(value > best) && !isnan(value)) return;
      best = value;
      winner = static_cast<int32_t>(iy * pool.width + ix);
    });
    ys[i] = best;
    winners[i] = winner;
  });
}

void Cuda::max_pool_backward(const Tensor& chosen, const Tensor& dy, Window window,
                             Tensor& dx) const {
  const Pool pool(dx.shape(), dy.shape(), window);
  gather_windows(pool, dy, dx, 1, IsChosen{chosen.data<int32_t>(), pool.width});
}

void Cuda::avg_pool(const Tensor& x, Window window, Tensor& y) const {
  const OnDevice on(x);
  const Pool pool(x.shape(), y.shape(), window);
  const float share = share_of(window);
  const float* const xs = x.data<float>();
  float* const ys = y.mutable_data<float>();
  each(y.numel(), on, [=] __device__(int64_t i) {
    const Pool::Place p = pool.in_y(i);
    float sum = 0;
    pool.each_tap(p, [&](int64_t iy, int64_t ix) { sum += xs[pool.at_x(p.n, iy, ix, p.c)]; });
    ys[i] = share * sum;
  });
}

void Cuda::avg_pool_backward(const Tensor& dy, Window window, Tensor& dx) const {
  const Pool pool(dx.shape(), dy.shape(), window);
  gather_windows(pool, dy, dx, share_of(window), Always{});
}

}  // namespace howmany::backends
