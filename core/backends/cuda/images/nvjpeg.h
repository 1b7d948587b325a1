// The few declarations of nvJPEG 12 and 13 that are used here, since the toolkit's parts can be
// installed one by one and this one often is not; tests/gpu/core_cuda/nvjpeg_test.cpp holds them
// against NVIDIA's own header where that is found. Private to core/backends/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "core/host/shared_library.h"

namespace howmany::cuda {

enum class NvjpegStatus : int { success = 0, bad_jpeg = 3, not_supported = 4 };

constexpr int kNvjpegDefaultBackend = 0;
constexpr unsigned kNvjpegInterpolate = 1U << 5;  // chroma, as libjpeg does
constexpr int kNvjpegGrey = 2, kNvjpegRgb = 5;    // of output: a plane; interleaved
constexpr int kNvjpegPlanes = 4;

using NvjpegHandle = void*;  // may serve many threads
using NvjpegState = void*;   // one image at a time

struct NvjpegImage {
  unsigned char* planes[kNvjpegPlanes];
  size_t pitches[kNvjpegPlanes];  // bytes from a row to the next
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

// Throws Error that says of each name why it was not to be had.
const Nvjpeg& nvjpeg();

}  // namespace howmany::cuda
