// How ranges reach a tool from outside: range_nvtx.cpp, or range_none.cpp where there is no NVTX.
// For range.cpp alone. Thread-safe.
#pragma once

#include "core/profile/range.h"

namespace howmany {

void push_to_tool(Category category, const char* name, uint64_t payload);
void pop_from_tool();

}  // namespace howmany
