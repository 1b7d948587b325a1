// SPDX-License-Identifier: Apache-2.0
// The instruction set of this machine's CPU. Thread-safe.
#pragma once

namespace howmany {

// True if the CPU multiplies bf16 numbers: it has AVX512-BF16, as every CPU with AMX does.
bool cpu_has_bf16();

}  // namespace howmany
