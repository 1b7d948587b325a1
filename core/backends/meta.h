// SPDX-License-Identifier: Apache-2.0
// The kernels of meta devices (core/tensor/meta.h) compute nothing. So a training step makes the
// allocations of a GPU, without the GPU, its memory and its time. Backend::on_meta() makes those of
// other kernels.
// Thread-safe.
#pragma once

namespace howmany {
class Backend;
const Backend& meta_backend();
}  // namespace howmany
