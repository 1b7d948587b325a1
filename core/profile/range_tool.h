// SPDX-License-Identifier: Apache-2.0
// Passes ranges to an external tool: range_nvtx.cpp, or range_none.cpp without NVTX. Private to
// range.cpp. Thread-safe.
#pragma once

#include "core/profile/range.h"

namespace howmany {

void push_to_tool(Category category, const char* name, uint64_t payload);
void pop_from_tool();

}  // namespace howmany
