// SPDX-License-Identifier: Apache-2.0
// A fake of cuDNN's graph API over the fake GPUs' memory. Its engines are in fake_cudnn_engines.h.
//
// Errors. Refuses what NVIDIA's library cannot check without a GPU: pointers that are missing, not
//   of the GPU, or less aligned than promised. graphs_test.cpp has that library check the graphs.
// HM_FAKE_CUDNN=refuse: returns no handle.
#include "tests/fakes/fake_cudnn.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fakes/fake_cudnn_engines.h"

namespace howmany::testing_support::fake_cudnn {
namespace {

thread_local std::string last_error;

cudnnStatus_t refuse(cudnnStatus_t status, const char* why) {
  last_error = why;
  return status;
}
#define HM_REFUSE_UNLESS(condition, status) \
  if (!(condition)) return refuse(CUDNN_STATUS_##status, #condition)

size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_FLOAT:
      return sizeof(float);
    case CUDNN_TYPE_INT64:
      return sizeof(int64_t);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return sizeof(void*);
    default:
      return sizeof(int);  // an enumeration
  }
}

// NVIDIA's library checks all else, without a GPU: graphs_test.cpp.
cudnnStatus_t check(const Object& o) {
  if (o.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) return CUDNN_STATUS_SUCCESS;
  const Object& engine = o.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  HM_REFUSE_UNLESS(engine.engine != Engine::unfit, NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT);
  return CUDNN_STATUS_SUCCESS;
}

// Writes to descriptors that the caller made. Returns only the count if `most` is 0.
cudnnStatus_t give_results(const Object& heuristics, int64_t most, int64_t* count, void** into) {
  const std::vector<Engine> engines = advised(heuristics);
  *count = static_cast<int64_t>(engines.size());
  if (most == 0) return CUDNN_STATUS_SUCCESS;
  *count = std::min(*count, most);
  for (int64_t i = 0; i < *count; ++i) {
    Object& result = *static_cast<Object*>(into[i]);
    HM_REFUSE_UNLESS(result.type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, BAD_PARAM);
    result.engine = engines[static_cast<size_t>(i)];
    result.graph = &heuristics.object(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    result.finished = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

std::atomic<int> runs[static_cast<size_t>(Engine::count)];

cudnnStatus_t execute(const Object& plan, const Object& pack, cudaStream_t stream) {
  HM_REFUSE_UNLESS(plan.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && plan.finished,
                   BAD_PARAM_NOT_FINALIZED);
  HM_REFUSE_UNLESS(pack.type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR && pack.finished,
                   BAD_PARAM_NOT_FINALIZED);
  const Object& configuration = plan.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Run run(*configuration.graph, pack, configuration.engine);
  const std::string why = run.misfit();
  if (!why.empty()) return refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, why.c_str());
  HM_REFUSE_UNLESS(configuration.engine != Engine::failing, EXECUTION_FAILED);
  ++runs[static_cast<size_t>(configuration.engine)];
  HM_REFUSE_UNLESS(hm_fake_gpu_do(stream,
                                  [run, stream] {
                                    run.compute();
                                    hm_fake_gpu_spend(stream, seconds_of(run.engine()));
                                  }) == 0,
                   EXECUTION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace howmany::testing_support::fake_cudnn

using namespace howmany::testing_support::fake_cudnn;

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

extern "C" {

int hm_fake_cudnn_runs(int engine) { return runs[engine]; }

size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "the fake cuDNN refuses"; }
void cudnnGetLastErrorString(char* message, size_t size) {
  std::snprintf(message, size, "%s", last_error.c_str());
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  const char* const mode = std::getenv("HM_FAKE_CUDNN");
  HM_REFUSE_UNLESS(mode == nullptr || std::string_view(mode) != "refuse", NOT_INITIALIZED);
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* made) {
  *made = new Object{.type = type};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t made) {
  delete static_cast<Object*>(made);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t made,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  Object& o = *static_cast<Object*>(made);
  HM_REFUSE_UNLESS(!o.finished, BAD_PARAM);
  const auto* const bytes = static_cast<const char*>(values);
  o.values[name].assign(bytes, bytes + static_cast<size_t>(count) * size_of(type));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t made) {
  Object& o = *static_cast<Object*>(made);
  HM_REFUSE_UNLESS(!o.finished, BAD_PARAM);
  const cudnnStatus_t status = check(o);
  o.finished = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t made,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t most, int64_t* count,
                                       void* into) {
  const Object& o = *static_cast<const Object*>(made);
  HM_REFUSE_UNLESS(o.finished, NOT_INITIALIZED);
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return give_results(o, most, count, static_cast<void**>(into));
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      Object& engine = **static_cast<Object**>(into);
      engine.engine = o.engine;
      engine.finished = true;
      return *count = 1, CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      *static_cast<int64_t*>(into) = static_cast<int64_t>(o.engine);
      return *count = 1, CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      const auto notes = notes_of(o.engine);
      HM_REFUSE_UNLESS(static_cast<int64_t>(notes.size()) <= most, BAD_PARAM);
      std::copy(notes.begin(), notes.end(), static_cast<cudnnBackendNumericalNote_t*>(into));
      return *count = static_cast<int64_t>(notes.size()), CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      *count = is_compiled(o.engine) ? 1 : 0;
      if (*count > 0)
        *static_cast<cudnnBackendBehaviorNote_t*>(into) = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *static_cast<int64_t*>(into) =
          workspace_of(o.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine);
      return *count = 1, CUDNN_STATUS_SUCCESS;
    default:
      return refuse(CUDNN_STATUS_BAD_PARAM, "an attribute that is not read here");
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  HM_REFUSE_UNLESS(handle != nullptr, BAD_PARAM_NULL_POINTER);
  return execute(*static_cast<const Object*>(plan), *static_cast<const Object*>(pack),
                 handle->stream);
}

}  // extern "C"
