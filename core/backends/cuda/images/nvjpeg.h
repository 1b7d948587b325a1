// SPDX-License-Identifier: Apache-2.0
// The declarations of nvJPEG 12 and 13 that we use, because its header is an optional part of the
// toolkit. tests/gpu/core_cuda/nvjpeg_test.cpp compares them with NVIDIA's header if that is
// installed. Private to core/backends/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "core/host/shared_library.h"

namespace howmany::cuda {

enum class NvjpegStatus : int { success = 0, bad_jpeg = 3, not_supported = 4 };

constexpr int kNvjpegDefaultBackend = 0;
constexpr unsigned kNvjpegInterpolate = 1U << 5;  // interpolates chroma, as libjpeg does
constexpr int kNvjpegGrey = 2, kNvjpegRgb = 5;    // output formats: one plane; interleaved
constexpr int kNvjpegPlanes = 4;

using NvjpegHandle = void*;  // thread-safe
using NvjpegState = void*;   // for one image at a time

struct NvjpegImage {
  unsigned char* planes[kNvjpegPlanes];
  size_t pitches[kNvjpegPlanes];  // bytes between rows
};

using NvjpegCreateEx = NvjpegStatus(int backend, void* device_allocator, void* pinned_allocator,
                                    unsigned flags, NvjpegHandle* handle);
using NvjpegStateCreate = NvjpegStatus(NvjpegHandle handle, NvjpegState* state);
using NvjpegStateDestroy = NvjpegStatus(NvjpegState state);
using NvjpegGetImageInfo = NvjpegStatus(NvjpegHandle handle, const unsigned char* data,
                                        size_t bytes, int* components, int* subsampling,
                                        int* widths, int* heights);
using NvjpegDecode = NvjpegStatus(NvjpegHandle handle, NvjpegState state, const unsigned char* data,
                                  size_t bytes, int output, NvjpegImage* to, cudaStream_t stream);

struct Nvjpeg : SharedLibrary {
  using SharedLibrary::SharedLibrary;
  NvjpegCreateEx* create_ex = find<NvjpegCreateEx*>("nvjpegCreateEx");
  NvjpegStateCreate* state_create = find<NvjpegStateCreate*>("nvjpegJpegStateCreate");
  NvjpegStateDestroy* state_destroy = find<NvjpegStateDestroy*>("nvjpegJpegStateDestroy");
  NvjpegGetImageInfo* get_image_info = find<NvjpegGetImageInfo*>("nvjpegGetImageInfo");
  NvjpegDecode* decode = find<NvjpegDecode*>("nvjpegDecode");
};

// Throws Error if the library cannot be opened. The message has the reason for each file name.
const Nvjpeg& nvjpeg();

}  // namespace howmany::cuda
