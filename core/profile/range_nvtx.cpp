// SPDX-License-Identifier: Apache-2.0
#include <nvtx3/nvToolsExt.h>

#include "core/profile/range_tool.h"

namespace howmany {
namespace {

nvtxDomainHandle_t make_domain() {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("howmany");
  for (uint32_t id = 1; id <= kCategories; ++id)
    nvtxDomainNameCategoryA(domain, id, name_of(static_cast<Category>(id)));
  return domain;
}

// Returns null if no tool is attached.
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = make_domain();
  return handle;
}

}  // namespace

void push_to_tool(Category category, const char* name, uint64_t payload) {
  const nvtxDomainHandle_t listening = domain();
  if (!listening) return;
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.category = static_cast<uint32_t>(category);
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = name;
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = payload;
  nvtxDomainRangePushEx(listening, &event);
}

void pop_from_tool() {
  if (const nvtxDomainHandle_t listening = domain()) nvtxDomainRangePop(listening);
}

bool ranges_built_in() { return true; }

}  // namespace howmany
