// What the fake libraries, and tests that look behind them, ask the fake GPUs of fake_cuda.cpp.
// Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

// Work of a stream: done now, behind what the stream still has to do, or kept for the graph that it
// captures. Whatever it reads but the GPUs' memory must be its own. Returns a cudaError_t.
int hm_fake_gpu_do(cudaStream_t stream, std::function<void()> work);

extern "C" {

// Opens the GPUs' memory to the host, for one thread at a time.
void hm_fake_gpu_enter();
void hm_fake_gpu_leave();
// Counts it; an error where another device than the stream's is current.
int hm_fake_gpu_launched(cudaStream_t stream);
int hm_fake_gpu_kernels();     // how many were launched; products are none
int hm_fake_gpu_waits();       // how often the host waited for a stream or event
int64_t hm_fake_gpu_pinned();  // bytes of page-locked memory
// From now on copies from page-locked memory wait until somebody waits for them.
void hm_fake_gpu_lazy(bool copies);
// That memory at an address where it is always open; null for memory of the host.
void* hm_fake_gpu_open(const void* memory);

// The stream's work took that much longer by the GPU's clock, as events tell it.
void hm_fake_gpu_spend(cudaStream_t stream, double seconds);

// Until all that the stream was asked is done; spoils a capture.
void hm_fake_gpu_wait(cudaStream_t stream);
int hm_fake_gpu_of(cudaStream_t stream);
// Behind what the stream was asked before: done(with) is called, under the GPUs' lock and any
// number of times, until it says so.
void hm_fake_gpu_queue(cudaStream_t stream, bool (*done)(void*), void* with);

// The GPU in whose allocated memory all those bytes are; -1: none.
int hm_fake_gpu_holding(const void* begin, size_t bytes);
}
