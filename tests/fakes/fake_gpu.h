// SPDX-License-Identifier: Apache-2.0
// The interface of the fake libraries and of tests to the fake GPUs (fake_cuda.cpp). Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

// Enqueues work: runs it now, or after the stream's pending work, or adds it to the graph that the
// stream captures. It must own all data except for GPU memory. Returns a cudaError_t.
int hm_fake_gpu_do(cudaStream_t stream, std::function<void()> work);

extern "C" {

// Make the GPUs' memory accessible to the host, for one thread at a time.
void hm_fake_gpu_enter();
void hm_fake_gpu_leave();
// Counts a launch. Returns an error if the current device is not the stream's.
int hm_fake_gpu_launched(cudaStream_t stream);
int hm_fake_gpu_kernels();     // number of launches, without products
int hm_fake_gpu_waits();       // number of waits of the host for a stream or event
int64_t hm_fake_gpu_pinned();  // bytes of pinned memory
// If true, copies from pinned memory run only when the host waits for them.
void hm_fake_gpu_lazy(bool copies);
// Returns an address at which that memory is always accessible, or null for host memory.
void* hm_fake_gpu_open(const void* memory);

// Adds to the time of the stream's work on the GPU's clock, as measured by events.
void hm_fake_gpu_spend(cudaStream_t stream, double seconds);

// Blocks until the stream is idle. Invalidates a capture.
void hm_fake_gpu_wait(cudaStream_t stream);
int hm_fake_gpu_of(cudaStream_t stream);
// The GPUs that may access the pool of that one: bit i for GPU i.
unsigned hm_fake_gpu_peers(int index);
// Enqueues an item that blocks the stream until done(with) returns true. done() is called
// repeatedly under the GPUs' lock.
void hm_fake_gpu_queue(cudaStream_t stream, bool (*done)(void*), void* with);

// Returns the GPU whose allocated memory contains all those bytes, or -1.
int hm_fake_gpu_holding(const void* begin, size_t bytes);
}
