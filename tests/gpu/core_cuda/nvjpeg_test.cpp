// SPDX-License-Identifier: Apache-2.0
// Compares core/backends/cuda/images/nvjpeg.h with NVIDIA's header, if that is installed.
#include "core/backends/cuda/images/nvjpeg.h"

#include <gtest/gtest.h>

#include <type_traits>

#if __has_include(<nvjpeg.h>)
#include <nvjpeg.h>

namespace howmany::cuda {
namespace {

// True if both types are passed alike: both are pointers, or neither is, and their sizes are equal.
template <typename A, typename B>
constexpr bool kAlike = std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B);

template <typename F, typename G>
struct SameCall : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
requires(sizeof...(A) == sizeof...(B)) struct SameCall<R(A...), S(B...)>
    : std::bool_constant<kAlike<R, S> && (kAlike<A, B> && ...)> {
};

static_assert(SameCall<NvjpegCreateEx, decltype(nvjpegCreateEx)>::value);
static_assert(SameCall<NvjpegStateCreate, decltype(nvjpegJpegStateCreate)>::value);
static_assert(SameCall<NvjpegStateDestroy, decltype(nvjpegJpegStateDestroy)>::value);
static_assert(SameCall<NvjpegGetImageInfo, decltype(nvjpegGetImageInfo)>::value);
static_assert(SameCall<NvjpegDecode, decltype(nvjpegDecode)>::value);

static_assert(sizeof(NvjpegImage) == sizeof(nvjpegImage_t));
static_assert(offsetof(NvjpegImage, pitches) == offsetof(nvjpegImage_t, pitch));
static_assert(kNvjpegPlanes == NVJPEG_MAX_COMPONENT);
static_assert(kNvjpegDefaultBackend == NVJPEG_BACKEND_DEFAULT);
static_assert(kNvjpegInterpolate == (NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION));
static_assert(kNvjpegGrey == NVJPEG_OUTPUT_Y && kNvjpegRgb == NVJPEG_OUTPUT_RGBI);
static_assert(static_cast<int>(NvjpegStatus::success) == NVJPEG_STATUS_SUCCESS);
static_assert(static_cast<int>(NvjpegStatus::bad_jpeg) == NVJPEG_STATUS_BAD_JPEG);
static_assert(static_cast<int>(NvjpegStatus::not_supported) == NVJPEG_STATUS_JPEG_NOT_SUPPORTED);

TEST(Nvjpeg, IsDeclaredAsNvidiaDeclaresIt) { SUCCEED(); }

}  // namespace
}  // namespace howmany::cuda

#else

TEST(Nvjpeg, IsDeclaredAsNvidiaDeclaresIt) { GTEST_SKIP() << "no nvjpeg.h here"; }

#endif
