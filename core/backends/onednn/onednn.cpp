// SPDX-License-Identifier: Apache-2.0
#include "core/backends/onednn/onednn.h"

#include <fmt/core.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "core/backends/onednn/primitives.h"

namespace howmany {
namespace onednn {
namespace {

std::string_view instruction_set() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "SSE4.1";
    case dnnl::cpu_isa::avx:
      return "AVX";
    case dnnl::cpu_isa::avx2:
      return "AVX2";
    case dnnl::cpu_isa::avx2_vnni:
      return "AVX2 VNNI";
    case dnnl::cpu_isa::avx512_core:
      return "AVX-512";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "AVX-512 VNNI";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "AVX-512 bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "AVX-512 AMX";
    default:
      return "instruction set unknown";
  }
}

}  // namespace

std::string OneDnn::version() const {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}, {}", v->major, v->minor, v->patch, instruction_set());
}

bool OneDnn::computes_in(Precision precision) const {
  return precision == Precision::f32 || (precision == Precision::bf16 && multiplies_bf16());
}

}  // namespace onednn

namespace backends {
std::unique_ptr<Backend> onednn() { return std::make_unique<howmany::onednn::OneDnn>(); }
}  // namespace backends

}  // namespace howmany
