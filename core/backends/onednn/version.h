// SPDX-License-Identifier: Apache-2.0
// The differences between oneDNN 2 and 3, which has no operation descriptors. Only this file
// depends on the version. Arguments are those of version 3, without engine and attributes.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

#include "core/backends/onednn/primitives.h"

namespace howmany::onednn {

// Returns the first of oneDNN's implementations whose name is not refused, or the last one.
template <class PrimitiveDesc, class Refused>
PrimitiveDesc unless(Refused&& refused, PrimitiveDesc desc) {
  while (refused(std::string_view(desc.impl_info_str())) && desc.next_impl()) {
  }
  return desc;
}

#if DNNL_VERSION_MAJOR >= 3

using SoftmaxForward = dnnl::softmax_forward;
inline DataType type_of(const Desc& desc) { return desc.get_data_type(); }

template <class Primitive, class... Args>
typename Primitive::primitive_desc describe_with(const dnnl::primitive_attr& attr,
                                                 const Args&... args) {
  return {engine(), args..., attr};
}
template <class Primitive, class... Args>
typename Primitive::primitive_desc describe(const Args&... args) {
  return describe_with<Primitive>(attributes(), args...);
}
template <class Primitive, class Forward, class... Args>
typename Primitive::primitive_desc describe_backward(const Forward& forward, const Args&... args) {
  return {engine(), args..., forward, attributes()};
}
template <class Primitive, class Refused, class Forward, class... Args>
auto describe_backward_unless(Refused&& refused, const Forward& forward, const Args&... args) {
  return unless(refused, describe_backward<Primitive>(forward, args...));
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
inline DataType type_of(const Desc& desc) { return desc.data_type(); }

template <class Primitive, class... Args>
typename Primitive::primitive_desc describe_with(const dnnl::primitive_attr& attr,
                                                 const Args&... args) {
  return {typename Primitive::desc(args...), attr, engine()};
}
template <class Primitive, class... Args>
typename Primitive::primitive_desc describe(const Args&... args) {
  return describe_with<Primitive>(attributes(), args...);
}
template <class Primitive, class Forward, class... Args>
typename Primitive::primitive_desc describe_backward(const Forward& forward, const Args&... args) {
  return {typename Primitive::desc(args...), attributes(), engine(), forward};
}
// next_impl() reads `what` and `forward` again, so they must still exist.
template <class Primitive, class Refused, class Forward, class... Args>
auto describe_backward_unless(Refused&& refused, const Forward& forward, const Args&... args) {
  const typename Primitive::desc what(args...);
  return unless(refused, typename Primitive::primitive_desc(what, attributes(), engine(), forward));
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
