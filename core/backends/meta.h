// SPDX-License-Identifier: Apache-2.0
// The kernels of meta devices (core/tensor/meta.h): they compute nothing. So a training step on a
// meta device allocates what it would on a GPU, without the GPU, the memory or the time.
// Thread-safe.
#pragma once

namespace howmany {
class Backend;
const Backend& meta_backend();
}  // namespace howmany
