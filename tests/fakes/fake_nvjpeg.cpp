// SPDX-License-Identifier: Apache-2.0
// A fake of nvJPEG's single-image decoder, by libjpeg-turbo over the fake GPUs' memory
// (fake_cuda.cpp). Supports baseline JPEGs, YCbCr or grey.
//
// Ordering. Reads the caller's bytes and writes pixels when the stream reaches the call.
// Errors. Rejects and counts memory of another GPU, a state that is busy with another image, and
//   RGB output of a grey image, which the manual leaves undefined.
#include <csetjmp>
#include <cstdio>
// jpeglib.h needs size_t and FILE declared before it.
#include <jpeglib.h>

#include <memory>
#include <vector>

#include "core/backends/cuda/images/nvjpeg.h"
#include "tests/fakes/fake_gpu.h"
#include "tests/fakes/fake_nvjpeg.h"

namespace howmany {
namespace {

using cuda::NvjpegImage;
using cuda::NvjpegStatus;

FakeNvjpeg told;

struct Handle {
  int device;
};
struct State {
  std::atomic<bool> busy = false;
};

struct Header {
  int width = 0, height = 0, components = 0;
  bool plain = false;
};

struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
};

[[noreturn]] void fail(j_common_ptr info) {
  std::longjmp(reinterpret_cast<Errors*>(info->err)->jump, 1);
}
void on_message(j_common_ptr info, int level) {
  if (level < 0) fail(info);
}

struct Jpeg {
  Jpeg() {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = fail;
    errors.base.emit_message = on_message;
    jpeg_create_decompress(&info);
  }
  ~Jpeg() { jpeg_destroy_decompress(&info); }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  // Returns false if it is not a JPEG. Has no objects with destructors, since longjmp may leave it.
  bool open(const unsigned char* data, size_t bytes) {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_mem_src(&info, data, bytes);
    jpeg_read_header(&info, TRUE);
    return true;
  }
  bool read(unsigned char* to, size_t pitch, bool grey) {
    if (setjmp(errors.jump) != 0) return false;
    info.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = to + info.output_scanline * pitch;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    return true;
  }
  Header header() const {
    const bool known = info.num_components == 1 || info.jpeg_color_space == JCS_YCbCr;
    return {static_cast<int>(info.image_width), static_cast<int>(info.image_height),
            info.num_components, known && info.progressive_mode == FALSE};
  }

  jpeg_decompress_struct info{};
  Errors errors{};
};

struct Job {
  State* state;
  const unsigned char* data;
  size_t bytes;
  bool grey;
  NvjpegImage to;

  bool decode(unsigned char* there) const {
    Jpeg jpeg;
    return jpeg.open(data, bytes) && jpeg.read(there, to.pitches[0], grey);
  }
};

bool done(void* with) {
  const std::unique_ptr<Job> job(static_cast<Job*>(with));
  const bool arrived =
      job->decode(static_cast<unsigned char*>(hm_fake_gpu_open(job->to.planes[0])));
  ++(arrived ? told.decoded : told.misused);
  job->state->busy = false;
  return true;
}

NvjpegStatus misused() {
  ++told.misused;
  return NvjpegStatus{2};
}

}  // namespace
}  // namespace howmany

using namespace howmany;

extern "C" {

FakeNvjpeg* hm_fake_nvjpeg() { return &told; }

NvjpegStatus nvjpegCreateEx(int backend, void* device_allocator, void* pinned_allocator,
                            unsigned flags, void** handle) {
  if (backend != 0 || device_allocator || pinned_allocator || flags != 1U << 5) return misused();
  auto* const made = new Handle{};
  cudaGetDevice(&made->device);
  return *handle = made, NvjpegStatus::success;
}

NvjpegStatus nvjpegJpegStateCreate(void* handle, void** state) {
  if (handle == nullptr) return misused();
  ++told.states;
  return *state = new State, NvjpegStatus::success;
}

NvjpegStatus nvjpegJpegStateDestroy(void* state) {
  if (static_cast<State*>(state)->busy) return misused();
  --told.states;
  return delete static_cast<State*>(state), NvjpegStatus::success;
}

NvjpegStatus nvjpegGetImageInfo(void* handle, const unsigned char* data, size_t bytes,
                                int* components, int* subsampling, int* widths, int* heights) {
  if (handle == nullptr) return misused();
  Jpeg jpeg;
  if (!jpeg.open(data, bytes)) return NvjpegStatus::bad_jpeg;
  const Header header = jpeg.header();
  *components = header.components;
  *subsampling = -1;
  widths[0] = header.width;
  heights[0] = header.height;
  return NvjpegStatus::success;
}

NvjpegStatus nvjpegDecode(void* handle, void* state, const unsigned char* data, size_t bytes,
                          int output, NvjpegImage* to, cudaStream_t stream) {
  if (handle == nullptr || state == nullptr) return misused();
  const int device = static_cast<Handle*>(handle)->device;
  Jpeg jpeg;
  if (!jpeg.open(data, bytes)) return NvjpegStatus::bad_jpeg;
  const Header header = jpeg.header();
  if (!header.plain) return NvjpegStatus::not_supported;
  const bool grey = header.components == 1;
  const size_t row = static_cast<size_t>(header.width) * (grey ? 1 : 3);
  const size_t size = to->pitches[0] * static_cast<size_t>(header.height);
  if (output != (grey ? cuda::kNvjpegGrey : cuda::kNvjpegRgb) || to->pitches[0] < row ||
      hm_fake_gpu_of(stream) != device || hm_fake_gpu_holding(to->planes[0], size) != device)
    return misused();
  std::vector<unsigned char> pixels(size);
  auto job = std::make_unique<Job>(Job{static_cast<State*>(state), data, bytes, grey, *to});
  if (!job->decode(pixels.data())) return NvjpegStatus::bad_jpeg;
  if (static_cast<State*>(state)->busy.exchange(true)) return misused();
  hm_fake_gpu_queue(stream, done, job.release());
  return NvjpegStatus::success;
}

}  // extern "C"
