// oneDNN 3 did away with version 2's operation descriptors: what differs between the two, here and
// nowhere else. Arguments are those of version 3, less engine and attributes.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include "core/backends/onednn/primitives.h"

namespace howmany::onednn {

#if DNNL_VERSION_MAJOR >= 3

using SoftmaxForward = dnnl::softmax_forward;

template <class Primitive, class... Args>
typename Primitive::primitive_desc describe(const Args&... args) {
  return {engine(), args..., attributes()};
}
template <class Primitive, class Forward, class... Args>
typename Primitive::primitive_desc describe_backward(const Forward& forward, const Args&... args) {
  return {engine(), args..., forward, attributes()};
}
inline auto describe_eltwise(dnnl::algorithm how, const Desc& desc) {
  return describe<dnnl::eltwise_forward>(dnnl::prop_kind::forward_training, how, desc, desc, 0.0F,
                                         0.0F);
}
template <class Forward>
auto describe_eltwise_backward(const Forward& forward, dnnl::algorithm how, const Desc& desc) {
  return describe_backward<dnnl::eltwise_backward>(forward, how, desc, desc, desc, 0.0F, 0.0F);
}

#else

using SoftmaxForward = dnnl::softmax_v2_forward;

template <class Primitive, class... Args>
typename Primitive::primitive_desc describe(const Args&... args) {
  return {typename Primitive::desc(args...), attributes(), engine()};
}
template <class Primitive, class Forward, class... Args>
typename Primitive::primitive_desc describe_backward(const Forward& forward, const Args&... args) {
  return {typename Primitive::desc(args...), attributes(), engine(), forward};
}
inline auto describe_eltwise(dnnl::algorithm how, const Desc& desc) {
  return describe<dnnl::eltwise_forward>(dnnl::prop_kind::forward_training, how, desc);
}
template <class Forward>
auto describe_eltwise_backward(const Forward& forward, dnnl::algorithm how, const Desc& desc) {
  return describe_backward<dnnl::eltwise_backward>(forward, how, desc, desc);
}

#endif

}  // namespace howmany::onednn
