// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string_view>

#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"
#include "core/backends/onednn/products.h"
#include "core/backends/onednn/version.h"

namespace howmany::onednn {
namespace {

using dnnl::algorithm;
using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

struct ConvKey {
  int64_t n, h, w, in, h_out, w_out, out, size, stride, padding;
  bool bias;
  DataType inputs;
  int threads;
  auto operator<=>(const ConvKey&) const = default;
};

ConvKey key_of(const Tensor& x, const Tensor& y, Window window, bool bias) {
  const Shape &a = x.shape(), &b = y.shape();
  return {a[0],
          a[1],
          a[2],
          a[3],
          b[1],
          b[2],
          b[3],
          window.size,
          window.stride,
          window.padding,
          bias,
          product_type(),
          omp_get_max_threads()};
}

// Extents and memory layouts of one convolution. The layout of activations is fixed; oneDNN chooses
// that of weights. Inputs have the type `inputs`, outputs are f32.
struct Layouts {
  Layouts(const ConvKey& k, algorithm how, FormatTag tag, DataType inputs)
      : algorithm(how),
        channels(k.in),
        x({k.n, k.in, k.h, k.w}, inputs, tag),
        dx(f32_desc({k.n, k.in, k.h, k.w}, tag)),
        w({k.out, k.in, k.size, k.size}, inputs, FormatTag::any),
        dw(f32_desc({k.out, k.in, k.size, k.size}, FormatTag::any)),
        bias(k.bias ? f32_desc({k.out}, FormatTag::a) : Desc()),
        y(f32_desc({k.n, k.out, k.h_out, k.w_out}, tag)),
        dy({k.n, k.out, k.h_out, k.w_out}, inputs, tag),
        strides{k.stride, k.stride},
        padding{k.padding, k.padding},
        // The padding that the last window uses. If the stride leaves a remainder it is less than
        // the padding, or negative.
        padding_end{(k.h_out - 1) * k.stride + k.size - k.h - k.padding,
                    (k.w_out - 1) * k.stride + k.size - k.w - k.padding} {}

  Forward::primitive_desc forward() const {
    return describe<Forward>(dnnl::prop_kind::forward_training, algorithm, x, w, bias, y, strides,
                             padding, padding_end);
  }
  BackwardData::primitive_desc backward_data() const {
    return describe_backward<BackwardData>(forward(), algorithm, dx, w, dy, strides, padding,
                                           padding_end);
  }
  BackwardWeights::primitive_desc backward_weights() const {
    const auto refused = [&](std::string_view kernel) { return overruns(kernel); };
    return describe_backward_unless<BackwardWeights>(refused, forward(), algorithm, x, dw, dy,
                                                     strides, padding, padding_end);
  }
  // The 1x1 kernels write beyond their scratch memory, also into each other's. This happens if the
  // stride is above 1 and there are fewer channels than vector lanes (uxlfoundation/oneDNN issue
  // 6035).
  bool overruns(std::string_view kernel) const {
    constexpr int64_t kVector = 16;  // f32 lanes of AVX-512, the widest
    const bool is_of_these = kernel.starts_with("jit_1x1") || kernel.starts_with("jit_bf16_1x1");
    return is_of_these && strides[0] != 1 && channels < kVector;
  }

  dnnl::algorithm algorithm;
  int64_t channels;
  Desc x, dx, w, dw, bias, y, dy;
  dnnl::memory::dims strides, padding, padding_end;
};

// Winograd's F(4x4,3x3) needs a quarter of the multiplications. It takes half the time of the
// direct algorithm with the same f32 accuracy, although blocked activations need a reorder on each
// side. The direct algorithm in bf16 takes as long, so this stays f32. Its transform of the weights
// pays off only with many tiles.
bool suits_winograd(const ConvKey& k) {
  constexpr int64_t kBlock = 16, kMinChannels = 32, kMinTiles = 64;
  const int64_t tiles = k.n * ((k.h_out + 3) / 4) * ((k.w_out + 3) / 4);
  return k.size == 3 && k.stride == 1 && tiles >= kMinTiles && k.in % kBlock == 0 &&
         k.out % kBlock == 0 && std::min(k.in, k.out) >= kMinChannels;
}

// Returns nullopt if oneDNN does not implement it on this CPU: it needs AVX-512.
std::optional<Layouts> winograd(const ConvKey& key) try {
  const Layouts layouts(key, algorithm::convolution_winograd, FormatTag::nChw16c, DataType::f32);
  layouts.backward_data();
  layouts.backward_weights();
  return layouts;
} catch (const dnnl::error&) {
  return {};
}

// Without AVX-512, the direct kernels are faster with blocked activations, by more than the
// reorders take.
bool suits_blocks(const ConvKey& k) {
  constexpr int64_t kBlock = 8;
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  return (isa == dnnl::cpu_isa::avx2 || isa == dnnl::cpu_isa::avx2_vnni) && k.size > 1 &&
         k.in % kBlock == 0 && k.out % kBlock == 0;
}

// Returns nullopt if oneDNN has only its reference kernel for a part of it, as for few pixels.
std::optional<Layouts> blocked(const ConvKey& key) {
  const Layouts layouts(key, algorithm::convolution_direct, FormatTag::nChw8c, key.inputs);
  const auto jit = [](const auto& desc) {
    return std::string_view(desc.impl_info_str()).starts_with("jit");
  };
  const bool all =
      jit(layouts.forward()) && jit(layouts.backward_data()) && jit(layouts.backward_weights());
  return all ? std::optional(layouts) : std::nullopt;
}

Layouts choose_layouts(const ConvKey& key) {
  if (suits_winograd(key))
    if (const auto layouts = winograd(key)) return *layouts;
  if (suits_blocks(key))
    if (const auto layouts = blocked(key)) return *layouts;
  return {key, algorithm::convolution_direct, FormatTag::nhwc, key.inputs};
}

// The primitives and reorders of one shape.
struct Conv {
  explicit Conv(const ConvKey& key) : Conv(key, choose_layouts(key)) {}

  Conv(const ConvKey& key, const Layouts& layouts)
      : forward(layouts.forward()),
        backward_data(layouts.backward_data()),
        backward_weights(layouts.backward_weights()) {
    const Desc x = f32_desc({key.n, key.in, key.h, key.w}, FormatTag::nhwc);
    const Desc y = f32_desc({key.n, key.out, key.h_out, key.w_out}, FormatTag::nhwc);
    const Desc w = f32_desc({key.out, key.in, key.size, key.size}, FormatTag::ohwi);
    x_in = Reorder(x, layouts.x);
    dx_out = Reorder(layouts.dx, x);
    dy_in = Reorder(y, layouts.dy);
    y_out = Reorder(layouts.y, y);
    pack_forward = Reorder(w, forward.desc(DNNL_ARG_WEIGHTS));
    pack_backward = Reorder(w, backward_data.desc(DNNL_ARG_WEIGHTS));
    dw_write = Reorder(backward_weights.desc(DNNL_ARG_DIFF_WEIGHTS), w);
    dw_add = Reorder(backward_weights.desc(DNNL_ARG_DIFF_WEIGHTS), w, true);
  }

  Kernel forward, backward_data, backward_weights;
  Reorder x_in, dx_out, dy_in, y_out;  // activations, to and from what the primitives use
  Reorder pack_forward, pack_backward, dw_write, dw_add;
};

// Calls write(buffer) with the memory of `to`, or with scratch memory that `out` then reorders into
// `to`.
template <class Write>
void write_through(const Reorder& out, const Desc& desc, Tensor& to, Write&& write) {
  if (out.identity()) return write(to.mutable_raw());
  Tensor scratch = Tensor::empty({static_cast<int64_t>(desc.get_size())}, Dtype::u8, to.device());
  write(scratch.mutable_raw());
  out.run(scratch.raw(), to.mutable_raw(), to.device());
}

}  // namespace

void convolution(const Tensor& x, const Tensor& w, const Tensor& bias, Window window, Tensor& y) {
  const Conv& conv = cached<Conv>(key_of(x, y, window, bool(bias)));
  const Tensor in = conv.x_in.run(x), weights = packed(w, conv.pack_forward);
  write_through(conv.y_out, conv.forward.desc(DNNL_ARG_DST), y, [&](void* out) {
    conv.forward.run({{DNNL_ARG_SRC, in.raw()},
                      {DNNL_ARG_WEIGHTS, weights.raw()},
                      {DNNL_ARG_BIAS, bias ? bias.raw() : nullptr},
                      {DNNL_ARG_DST, out}},
                     y.device());
  });
}

void convolution_backward(const Tensor& x, const Tensor& w, const Tensor& dy, Window window,
                          Tensor& dx, GradOut& dw) {
  const Conv& conv = cached<Conv>(key_of(x, dy, window, false));
  const Device device = dy.device();
  const Tensor d = conv.dy_in.run(dy);
  if (dw.value) {
    const Tensor in = conv.x_in.run(x);
    write_through(
        dw.accumulate ? conv.dw_add : conv.dw_write,
        conv.backward_weights.desc(DNNL_ARG_DIFF_WEIGHTS), dw.value, [&](void* to) {
          conv.backward_weights.run(
              {{DNNL_ARG_SRC, in.raw()}, {DNNL_ARG_DIFF_DST, d.raw()}, {DNNL_ARG_DIFF_WEIGHTS, to}},
              device);
        });
  }
  if (!dx) return;
  const Tensor weights = packed(w, conv.pack_backward);
  write_through(conv.dx_out, conv.backward_data.desc(DNNL_ARG_DIFF_SRC), dx, [&](void* to) {
    conv.backward_data.run(
        {{DNNL_ARG_DIFF_DST, d.raw()}, {DNNL_ARG_WEIGHTS, weights.raw()}, {DNNL_ARG_DIFF_SRC, to}},
        device);
  });
}

void OneDnn::conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, Window window,
                    Tensor& y) const {
  if (y.numel() > 0) convolution(x, w, bias, window, y);
}

void OneDnn::conv2d_backward(const Tensor& x, const Tensor& w, const Tensor& dy, Window window,
                             Tensor& dx, GradOut& dw, GradOut& dbias) const {
  const int64_t out = dy.shape()[3];
  store_column_sums(dbias, dy.data<float>(), out == 0 ? 0 : dy.numel() / out, out);
  if (dy.numel() > 0 && x.numel() > 0) return convolution_backward(x, w, dy, window, dx, dw);
  if (dx) dx.zero();
  if (dw.value && !dw.accumulate) dw.value.zero();
}

}  // namespace howmany::onednn
