// SPDX-License-Identifier: Apache-2.0
#include <emmintrin.h>

#include <cstdint>
#include <cstring>

#include "core/host/copy.h"

namespace howmany {
namespace {

constexpr size_t kShort = 32 << 10;
constexpr size_t kLine = 64;  // bytes
constexpr size_t kAhead = 8 * kLine;

// Copies from this size on bypass the caches. A copy reads and writes this many bytes each, which
// exceeds most caches. The reported cache size is useless on virtual machines, because it may be
// that of the host machine.
constexpr size_t kAroundCaches = 16 << 20;

template <typename Store>
void copy_lines(char* to, const char* from, size_t bytes, Store store) {
  for (size_t i = 0; i < bytes; i += kLine) {
    const auto* const in = reinterpret_cast<const __m128i*>(from + i);
    auto* const out = reinterpret_cast<__m128i*>(to + i);
    _mm_prefetch(from + i + kAhead, _MM_HINT_T0);
    const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
    store(out, a), store(out + 1, b), store(out + 2, c), store(out + 3, d);
  }
}

}  // namespace

void copy_host(void* to, const void* from, size_t bytes) {
  if (bytes < kShort) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return;
  }
  auto* out = static_cast<char*>(to);
  const auto* in = static_cast<const char*>(from);
  const size_t head = (kLine - reinterpret_cast<uintptr_t>(out) % kLine) % kLine;
  const size_t lines = (bytes - head) / kLine * kLine;
  std::memcpy(out, in, head);
  out += head, in += head;
  if (bytes < kAroundCaches) {
    copy_lines(out, in, lines, [](__m128i* at, __m128i v) { _mm_store_si128(at, v); });
  } else {
    copy_lines(out, in, lines, [](__m128i* at, __m128i v) { _mm_stream_si128(at, v); });
    _mm_sfence();
  }
  std::memcpy(out + lines, in + lines, bytes - head - lines);
}

}  // namespace howmany
