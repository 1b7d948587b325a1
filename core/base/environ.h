// SPDX-License-Identifier: Apache-2.0
// `environ` of POSIX, the variables of this process. Include this header instead of declaring it.
#pragma once

#include <unistd.h>

// The C library has more names for it. A linker that does not know them (cmake/portable.cmake)
// would give this program a copy, as it does for other variables of libraries, and the copy would
// stay null.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
extern "C" {
extern char** environ [[gnu::nodirect_extern_access]];
}
#endif
