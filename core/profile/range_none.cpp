#include "core/profile/range.h"

namespace howmany {

Range::Range(Category, const char*, uint64_t) {}
Range::~Range() = default;
bool ranges_built_in() { return false; }

}  // namespace howmany
