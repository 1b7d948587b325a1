// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "core/backends/cuda/images/nvjpeg.h"
#include "core/backends/cuda/images/resample.h"
#include "core/backends/cuda/runtime/runtime.h"
#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "core/gpu/images.h"
#include "core/gpu/stream.h"

namespace howmany {
namespace cuda {
namespace {

Nvjpeg open_nvjpeg() {
  std::string why;
  for (const char* name : {"libnvjpeg.so.13", "libnvjpeg.so.12"}) try {
      return Nvjpeg(name);
    } catch (const Error& e) {
      why += (why.empty() ? "" : "; ") + std::string(e.what());
    }
  throw Error("no nvJPEG on LD_LIBRARY_PATH, as PyPI's nvidia-nvjpeg has it: " + why);
}

// One handle per GPU, never destroyed.
NvjpegHandle handle_of(int index) {
  struct PerDevice {
    std::once_flag once;
    NvjpegHandle handle = nullptr;
  };
  static auto* const all = new std::array<PerDevice, 64>;
  const OnDevice on(index);  // throws if there is no such GPU
  PerDevice& one = all->at(static_cast<size_t>(index));
  std::call_once(one.once, [&] {
    const NvjpegStatus status = nvjpeg().create_ex(kNvjpegDefaultBackend, nullptr, nullptr,
                                                   kNvjpegInterpolate, &one.handle);
    HM_ENSURE(status == NvjpegStatus::success, "nvJPEG cannot start on cuda:{}: status {}", index,
              static_cast<int>(status));
  });
  return one.handle;
}

// Pinned host memory or GPU memory for the work of one stream. It does not shrink, except after an
// unusually large image, so that allocation does not wait for other streams.
class Room {
 public:
  Room(const gpu::Stream& stream, bool pinned) : stream_(stream), pinned_(pinned) {}
  ~Room() { give_back(); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  std::byte* of(int64_t bytes) {
    if (bytes > bytes_ || bytes_ > std::max(kKept, bytes)) {
      give_back();
      room_ = pinned_ ? gpu::allocate_pinned(bytes, stream_.index()) : on_gpu(bytes);
      bytes_ = bytes;
    }
    return static_cast<std::byte*>(room_);
  }

 private:
  static constexpr int64_t kKept = int64_t{32} << 20;

  cudaStream_t raw() const { return static_cast<cudaStream_t>(stream_.raw()); }

  void* on_gpu(int64_t bytes) const {
    const OnDevice on(stream_.index());
    void* room = nullptr;
    check(cudaMallocAsync(&room, static_cast<size_t>(bytes), raw()), "memory of an image");
    return room;
  }

  void give_back() noexcept {
    if (room_ != nullptr && pinned_) gpu::release_pinned(room_, stream_.index());
    if (room_ != nullptr && !pinned_) cudaFreeAsync(room_, raw());
    room_ = nullptr;
    bytes_ = 0;
  }

  const gpu::Stream& stream_;
  const bool pinned_;
  void* room_ = nullptr;
  int64_t bytes_ = 0;
};

// Both axes are stored contiguously, each as weights, first and count.
int64_t bytes_of(const image::Taps& taps) {
  return static_cast<int64_t>(taps.weights.size() * sizeof(float) +
                              2 * taps.first.size() * sizeof(int32_t));
}

std::byte* pack(const image::Taps& taps, std::byte* to) {
  const size_t weights = taps.weights.size() * sizeof(float);
  std::memcpy(to, taps.weights.data(), weights);
  auto* numbers = reinterpret_cast<int32_t*>(to + weights);
  for (const auto& list : {std::cref(taps.first), std::cref(taps.count)})
    for (const int64_t value : list.get()) *numbers++ = static_cast<int32_t>(value);
  return reinterpret_cast<std::byte*>(numbers);
}

Axis axis_at(const image::Taps& taps, const std::byte* at) {
  const auto* const weights = reinterpret_cast<const float*>(at);
  const auto* const first = reinterpret_cast<const int32_t*>(weights + taps.weights.size());
  return {first, first + taps.first.size(), weights, taps.stride};
}

}  // namespace

const Nvjpeg& nvjpeg() {
  static const Nvjpeg library = open_nvjpeg();
  return library;
}

}  // namespace cuda

namespace gpu {

std::string no_image_decoder(int index) {
  if (count() == 0) return unavailable();
  try {
    cuda::handle_of(index);
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

// Decodes one image at a time, from its bytes to its sample.
struct ImageDecoder::Lane {
  explicit Lane(int index) : handle(cuda::handle_of(index)), stream(index) {
    const cuda::OnDevice on(index);
    const auto status = cuda::nvjpeg().state_create(handle, &state);
    HM_ENSURE(status == cuda::NvjpegStatus::success, "nvJPEG has no state on cuda:{}: status {}",
              index, static_cast<int>(status));
  }
  ~Lane() {
    try {
      stream.finish();
      const cuda::OnDevice on(stream.index());
      cuda::nvjpeg().state_destroy(state);
    } catch (const std::exception&) {
      // The runtime has ended and freed it.
    }
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  cudaStream_t raw() const { return static_cast<cudaStream_t>(stream.raw()); }

  // Returns the channels of nvJPEG's output, or 0 if nvJPEG rejects the image or reports another
  // size.
  int channels_of(std::span<const uint8_t> jpeg, const image::Size& size) const {
    int components = 0, subsampling = 0;
    int widths[cuda::kNvjpegPlanes] = {}, heights[cuda::kNvjpegPlanes] = {};
    const auto status = cuda::nvjpeg().get_image_info(handle, jpeg.data(), jpeg.size(), &components,
                                                      &subsampling, widths, heights);
    const bool same = widths[0] == size.width && heights[0] == size.height;
    const bool known = components == 1 || components == 3;
    return status == cuda::NvjpegStatus::success && same && known ? components : 0;
  }

  // Decodes `bytes` to dense rows of pixels on the GPU. Returns null if nvJPEG rejects the image.
  std::byte* decode(const image::Size& size, int channels) {
    std::byte* const there = pixels.of(size.width * size.height * channels);
    cuda::NvjpegImage to{};
    to.planes[0] = reinterpret_cast<unsigned char*>(there);
    to.pitches[0] = static_cast<size_t>(size.width * channels);
    const int output = channels == 1 ? cuda::kNvjpegGrey : cuda::kNvjpegRgb;
    const auto status =
        cuda::nvjpeg().decode(handle, state, bytes.data(), bytes.size(), output, &to, raw());
    return status == cuda::NvjpegStatus::success ? there : nullptr;
  }

  // Starts the copy of both axes of taps to the GPU. Returns their device pointer.
  std::byte* send(const image::Resampler& plan) {
    const int64_t size = cuda::bytes_of(plan.across()) + cuda::bytes_of(plan.down());
    std::byte* const host = pinned.of(size);
    cuda::pack(plan.down(), cuda::pack(plan.across(), host));
    std::byte* const there = taps.of(size);
    stream.copy_in(there, host, size);
    return there;
  }

  cuda::NvjpegHandle handle;
  cuda::NvjpegState state = nullptr;
  Stream stream;
  cuda::Room pinned{stream, true}, pixels{stream, false}, taps{stream, false};
  std::vector<uint8_t> bytes;  // nvJPEG may read them until the stream is idle
};

ImageDecoder::ImageDecoder(int index) {
  for (auto& lane : lanes_) lane = std::make_unique<Lane>(index);
}

ImageDecoder::~ImageDecoder() = default;

ImageDecoder::Lane& ImageDecoder::next() {
  Lane& lane = *lanes_[turn_++ % std::size(lanes_)];
  lane.stream.finish();
  return lane;
}

bool ImageDecoder::decode(std::vector<uint8_t>& bytes, const image::Size& size,
                          const image::Resampler& plan, bool normalize, float* out) {
  Lane& lane = next();
  const int channels = lane.channels_of(bytes, size);
  if (channels == 0) return false;
  const cuda::OnDevice on(lane.stream.index());
  lane.bytes.swap(bytes);
  const std::byte* const pixels = lane.decode(size, channels);
  if (pixels == nullptr) {
    lane.stream.finish();  // completes work that had begun
    lane.bytes.swap(bytes);
    return false;
  }
  const std::byte* const taps = lane.send(plan);
  const image::Scaling to = image::scaling(normalize);
  cuda::resample({.pixels = reinterpret_cast<const uint8_t*>(pixels),
                  .pitch = size.width * channels,
                  .channels = channels,
                  .across = cuda::axis_at(plan.across(), taps),
                  .down = cuda::axis_at(plan.down(), taps + cuda::bytes_of(plan.across())),
                  .size = static_cast<int64_t>(plan.across().first.size()),
                  .flip = plan.flip(),
                  .scale = {to.scale[0], to.scale[1], to.scale[2]},
                  .shift = {to.shift[0], to.shift[1], to.shift[2]}},
                 out, lane.stream.index(), lane.raw());
  return true;
}

void ImageDecoder::put(const std::vector<float>& sample, float* out) {
  Lane& lane = next();
  const auto bytes = static_cast<int64_t>(sample.size() * sizeof(float));
  std::byte* const host = lane.pinned.of(bytes);
  std::memcpy(host, sample.data(), sample.size() * sizeof(float));
  lane.stream.copy_in(out, host, bytes);
}

void ImageDecoder::finish() {
  for (const auto& lane : lanes_) lane->stream.finish();
}

}  // namespace gpu
}  // namespace howmany
