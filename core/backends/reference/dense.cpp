// SPDX-License-Identifier: Apache-2.0
#include "core/backends/reference/reference.h"

namespace howmany::backends {

void Reference::matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                       bool accumulate, Tensor& y) const {
  const int64_t m = y.shape()[0], n = y.shape()[1], k = a.shape()[transpose_a ? 0 : 1];
  by_type(a, [&]<typename T>(T) {
    const T *left = a.data<T>(), *right = b.data<T>();
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = accumulate ? double{out[i * n + j]} : 0;
        for (int64_t l = 0; l < k; ++l)
          sum += double{left[transpose_a ? l * m + i : i * k + l]} *
                 double{right[transpose_b ? j * k + l : l * n + j]};
        out[i * n + j] = static_cast<T>(sum);
      }
  });
}

void Reference::linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation act,
                       Tensor& y) const {
  const int64_t rows = x.shape()[0], in = w.shape()[1], out = w.shape()[0];
  by_type(x, [&]<typename T>(T) {
    const T *xs = x.data<T>(), *ws = w.data<T>(), *bs = bias ? bias.data<T>() : nullptr;
    T* ys = y.mutable_data<T>();
    for (int64_t n = 0; n < rows; ++n)
      for (int64_t o = 0; o < out; ++o) {
        double sum = bs != nullptr ? double{bs[o]} : 0;
        for (int64_t i = 0; i < in; ++i) sum += double{xs[n * in + i]} * double{ws[o * in + i]};
        ys[n * out + o] = static_cast<T>(activate(sum, act));
      }
  });
}

void Reference::linear_backward(const Tensor& x, const Tensor& w, const Tensor& kept,
                                const Tensor& dy, Activation act, Tensor& dx, GradOut& dw,
                                GradOut& dbias) const {
  const int64_t rows = x.shape()[0], in = w.shape()[1], out = w.shape()[0];
  by_type(x, [&]<typename T>(T) {
    const T *xs = x.data<T>(), *ws = w.data<T>(), *dys = dy.data<T>();
    const T* ks = act == Activation::none ? nullptr : kept.data<T>();
    Doubles dxs = zeros(rows * in), dws = zeros(out * in), dbs = zeros(out);
    for (int64_t n = 0; n < rows; ++n)
      for (int64_t o = 0; o < out; ++o) {
        const int64_t at = n * out + o;
        const double dz = ks == nullptr ? dys[at] : dys[at] * activation_slope(ks[at], act);
        dbs[o] += dz;
        for (int64_t i = 0; i < in; ++i) {
          dxs[n * in + i] += dz * ws[o * in + i];
          dws[o * in + i] += dz * xs[n * in + i];
        }
      }
    if (dx) store<T>(dxs, dx);
    store<T>(dws, dw);
    store<T>(dbs, dbias);
  });
}

void Reference::embedding(const Tensor& ids, const Tensor& table, int64_t first, Tensor& y) const {
  const int64_t rows_here = table.shape()[0], width = table.shape()[1];
  by_type(table, [&]<typename T>(T) {
    const int64_t* id = ids.data<int64_t>();
    const T* rows = table.data<T>();
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < ids.numel(); ++i) {
      const int64_t row = id[i] - first;
      const bool here = row >= 0 && row < rows_here;
      for (int64_t c = 0; c < width; ++c) out[i * width + c] = here ? rows[row * width + c] : T{0};
    }
  });
}

void Reference::embedding_backward(const Tensor& ids, const Tensor& dy, int64_t first,
                                   GradOut& dtable) const {
  const int64_t rows = dtable.value.shape()[0], width = dtable.value.shape()[1];
  by_type(dy, [&]<typename T>(T) {
    const int64_t* id = ids.data<int64_t>();
    const T* d = dy.data<T>();
    Doubles sums = zeros(dtable.value.numel());
    for (int64_t i = 0; i < ids.numel(); ++i) {
      const int64_t row = id[i] - first;
      if (row < 0 || row >= rows) continue;
      for (int64_t c = 0; c < width; ++c) sums[row * width + c] += d[i * width + c];
    }
    store<T>(sums, dtable);
  });
}

}  // namespace howmany::backends
