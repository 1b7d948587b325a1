// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/kernels/pack.cuh"
#include "core/backends/cuda/runtime/cuda.h"

// Each thread writes one element, or a few adjacent channels, and gathers its inputs. There are no
// atomic additions, so results are deterministic.
namespace howmany::backends {
namespace {

using cuda::by_16;
using cuda::by_element;
using cuda::each_lane;
using cuda::each_pack;
using cuda::Floats;
using cuda::kLanes;
using cuda::Lanes;
using cuda::load;
using cuda::OnDevice;
using cuda::store;

// Maps a window of y [N,H',W',C] to x [N,H,W,C], and an element of x to the windows that contain
// it.
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
  // The first tap of a window along an axis that is not padding, and the end of the taps.
  __device__ int64_t begin(int64_t out) const {
    const int64_t at = out * window.stride - window.padding;
    return at < 0 ? 0 : at;
  }
  __device__ int64_t end(int64_t out, int64_t extent) const {
    const int64_t at = out * window.stride - window.padding + window.size;
    return at < extent ? at : extent;
  }
  // Calls visit(y, x) for every tap of the window at `out` that is not padding.
  template <typename Visit>
  __device__ void each_tap(const Place& out, Visit visit) const {
    for (int64_t y = begin(out.y); y < end(out.y, height); ++y)
      for (int64_t x = begin(out.x); x < end(out.x, width); ++x) visit(y, x);
  }
  // The windows [first, last) along an axis that contain `in`.
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

// dx[i] = factor * sum of dy over the windows that contain i, filtered by `counts`.
template <typename T, typename Counts>
void gather_windows(const Pool& pool, const Tensor& dy, Tensor& dx, float factor, Counts counts) {
  const OnDevice on(dy);
  const T* const d = dy.data<T>();
  T* const out = dx.mutable_data<T>();
  const bool together = pool.channels % kLanes<T> == 0 && by_16(d, out) && counts.by_16();
  each_pack<kLanes<T>>(dx.numel(), together, on, [=] __device__(int64_t i, auto lanes) {
    const Pool::Place p = pool.in_x(i);
    auto sum = each_lane(lanes, [](int) { return 0.0f; });
    for (int64_t y = pool.first_window(p.y); y < pool.last_window(p.y, pool.out_height); ++y)
      for (int64_t x = pool.first_window(p.x); x < pool.last_window(p.x, pool.out_width); ++x) {
        const int64_t at = pool.at_y(p.n, y, x, p.c);
        const auto more = counts(load(d + at, lanes), at, p, lanes);
        sum = each_lane(lanes, [&](int l) { return sum.at[l] + more.at[l]; });
      }
    store(out + i, each_lane(lanes, [&](int l) { return factor * sum.at[l]; }));
  });
}

struct All {
  bool by_16() const { return true; }
  template <int kCount>
  __device__ Floats<kCount> operator()(Floats<kCount> d, int64_t, const Pool::Place&,
                                       Lanes<kCount>) const {
    return d;
  }
};

struct OfChosen {
  const int32_t* chosen;
  int64_t width;
  bool by_16() const { return cuda::by_16(chosen); }
  template <int kCount>
  __device__ Floats<kCount> operator()(Floats<kCount> d, int64_t at, const Pool::Place& p,
                                       Lanes<kCount> lanes) const {
    const auto winner = cuda::read(chosen + at, lanes);
    const int64_t here = p.y * width + p.x;
    return each_lane(lanes, [&](int l) { return winner.at[l] == here ? d.at[l] : 0.0f; });
  }
};

template <typename T>
void choose(const Tensor& x, Window window, Tensor& chosen, Tensor& y) {
  const OnDevice on(x);
  const Pool pool(x.shape(), y.shape(), window);
  const T* const xs = x.data<T>();
  T* const ys = y.mutable_data<T>();
  int32_t* const winners = chosen.mutable_data<int32_t>();
  const bool together = pool.channels % kLanes<T> == 0 && by_16(xs, ys, winners);
  each_pack<kLanes<T>>(y.numel(), together, on, [=] __device__(int64_t i, auto lanes) {
    const Pool::Place p = pool.in_y(i);
    auto winner = each_lane(lanes, [](int) { return int32_t{-1}; });
    auto best = each_lane(lanes, [](int) { return 0.0f; });
    pool.each_tap(p, [&](int64_t iy, int64_t ix) {
      const auto value = load(xs + pool.at_x(p.n, iy, ix, p.c), lanes);
      const auto here = static_cast<int32_t>(iy * pool.width + ix);
      HM_UNROLL
      for (int l = 0; l < lanes.count; ++l) {
        const float v = value.at[l];
        if (winner.at[l] >= 0 && !(v > best.at[l]) && !isnan(v)) continue;
        best.at[l] = v;
        winner.at[l] = here;
      }
    });
    store(ys + i, best);
    cuda::write(winners + i, winner);
  });
}

template <typename T>
void average(const Tensor& x, Window window, float share, Tensor& y) {
  const OnDevice on(x);
  const Pool pool(x.shape(), y.shape(), window);
  const T* const xs = x.data<T>();
  T* const ys = y.mutable_data<T>();
  const bool together = pool.channels % kLanes<T> == 0 && by_16(xs, ys);
  each_pack<kLanes<T>>(y.numel(), together, on, [=] __device__(int64_t i, auto lanes) {
    const Pool::Place p = pool.in_y(i);
    auto sum = each_lane(lanes, [](int) { return 0.0f; });
    pool.each_tap(p, [&](int64_t iy, int64_t ix) {
      const auto value = load(xs + pool.at_x(p.n, iy, ix, p.c), lanes);
      sum = each_lane(lanes, [&](int l) { return sum.at[l] + value.at[l]; });
    });
    store(ys + i, each_lane(lanes, [&](int l) { return share * sum.at[l]; }));
  });
}

float share_of(Window window) {
  return static_cast<float>(1 / static_cast<double>(window.size * window.size));
}

}  // namespace

void Cuda::max_pool(const Tensor& x, Window window, Tensor& chosen, Tensor& y) const {
  by_element(x.dtype(), [&](auto e) { choose<decltype(e)>(x, window, chosen, y); });
}

void Cuda::max_pool_backward(const Tensor& chosen, const Tensor& dy, Window window,
                             Tensor& dx) const {
  const Pool pool(dx.shape(), dy.shape(), window);
  const OfChosen counts{chosen.data<int32_t>(), pool.width};
  by_element(dy.dtype(), [&](auto e) { gather_windows<decltype(e)>(pool, dy, dx, 1, counts); });
}

void Cuda::avg_pool(const Tensor& x, Window window, Tensor& y) const {
  by_element(x.dtype(), [&](auto e) { average<decltype(e)>(x, window, share_of(window), y); });
}

void Cuda::avg_pool_backward(const Tensor& dy, Window window, Tensor& dx) const {
  const Pool pool(dx.shape(), dy.shape(), window);
  by_element(dy.dtype(),
             [&](auto e) { gather_windows<decltype(e)>(pool, dy, dx, share_of(window), All{}); });
}

}  // namespace howmany::backends
