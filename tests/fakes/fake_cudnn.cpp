// SPDX-License-Identifier: Apache-2.0
// A fake of cuDNN's graph API over the fake GPUs' memory. Its engines are in fake_cudnn_engines.h.
//
// Errors. As strict as the real one: rejects unknown, mistyped, missing and unfinalized attributes,
//   tensors that do not match, and pointers less aligned than promised. Rejects bf16 results for
//   which cuDNN has no engine.
// HM_FAKE_CUDNN=refuse: returns no handle.
#include "tests/fakes/fake_cudnn.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>

#include "tests/fakes/fake_cudnn_engines.h"
#include "tests/fakes/fake_cudnn_rules.h"

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

cudnnStatus_t check_tensor(const Object& o) {
  const Tensor t(o);
  HM_REFUSE_UNLESS(t.extents.size() >= 3 && t.extents.size() == t.strides.size(), BAD_PARAM);
  for (const auto* values : {&t.extents, &t.strides})
    for (const int64_t v : *values) HM_REFUSE_UNLESS(v > 0, BAD_PARAM);
  HM_REFUSE_UNLESS(t.type == CUDNN_DATA_FLOAT || t.type == CUDNN_DATA_BFLOAT16 || t.inside,
                   NOT_SUPPORTED);
  HM_REFUSE_UNLESS(!t.inside || !t.by_value, BAD_PARAM);
  HM_REFUSE_UNLESS(t.alignment > 0 && t.alignment % t.element() == 0, BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_window(const Object& o) {
  const auto spatial = static_cast<size_t>(o.one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  for (const auto name : {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
                          CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_DILATIONS})
    HM_REFUSE_UNLESS(o.all<int64_t>(name).size() == spatial, BAD_PARAM_SIZE_INSUFFICIENT);
  HM_REFUSE_UNLESS(spatial == 2 && o.all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) ==
                                       o.all<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
                   NOT_SUPPORTED);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_convolution(const Object& o) {
  const ConvolutionOf c(o);
  HM_REFUSE_UNLESS(c.x.extents.size() == 4 && c.w.extents.size() == 4 && c.y.extents.size() == 4,
                   BAD_PARAM);
  HM_REFUSE_UNLESS(c.x.extents[0] == c.y.extents[0], BAD_PARAM_SHAPE_MISMATCH);
  HM_REFUSE_UNLESS(c.x.extents[1] == c.w.extents[1], BAD_PARAM_SHAPE_MISMATCH);
  HM_REFUSE_UNLESS(c.w.extents[0] == c.y.extents[1], BAD_PARAM_SHAPE_MISMATCH);
  for (size_t d : {0, 1})
    HM_REFUSE_UNLESS(c.y.extents[d + 2] == (c.x.extents[d + 2] + 2 * c.padding[d] -
                                            c.dilation[d] * (c.w.extents[d + 2] - 1) - 1) /
                                                   c.stride[d] +
                                               1,
                     BAD_PARAM_SHAPE_MISMATCH);
  return CUDNN_STATUS_SUCCESS;
}

bool spreads(const Tensor& from, const Tensor& to) {
  if (from.extents.size() != to.extents.size()) return false;
  for (size_t d = 0; d < to.extents.size(); ++d)
    if (from.extents[d] != 1 && from.extents[d] != to.extents[d]) return false;
  return true;
}

size_t inputs_of(cudnnPointwiseMode_t mode) {
  switch (mode) {
    case CUDNN_POINTWISE_IDENTITY:
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_LOG:
    case CUDNN_POINTWISE_GEN_INDEX:
      return 1;
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_CMP_GE:
      return 2;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return 3;
    default:
      return 0;  // not used here
  }
}

cudnnStatus_t check_pointwise(const Object& o) {
  const OperationOf op = operation_of(o);
  const cudnnPointwiseMode_t mode = mode_of_pointwise(o);
  HM_REFUSE_UNLESS(op.inputs.size() == inputs_of(mode), BAD_PARAM);
  HM_REFUSE_UNLESS((axis_of_pointwise(o) >= 0) == (mode == CUDNN_POINTWISE_GEN_INDEX), BAD_PARAM);
  HM_REFUSE_UNLESS(op.inputs[0].extents == op.result.extents, BAD_PARAM_SHAPE_MISMATCH);
  for (const Tensor& in : op.inputs)
    HM_REFUSE_UNLESS(spreads(in, op.result), BAD_PARAM_SHAPE_MISMATCH);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_matmul(const Object& o) {
  const OperationOf op = operation_of(o);
  const auto &a = op.inputs[0].extents, &b = op.inputs[1].extents, &y = op.result.extents;
  HM_REFUSE_UNLESS(a.size() == 4 && b.size() == 4 && y.size() == 4, BAD_PARAM);
  for (size_t d : {0, 1}) HM_REFUSE_UNLESS(a[d] == y[d] && b[d] == y[d], BAD_PARAM_SHAPE_MISMATCH);
  HM_REFUSE_UNLESS(a[2] == y[2] && a[3] == b[2] && b[3] == y[3], BAD_PARAM_SHAPE_MISMATCH);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_reduction(const Object& o) {
  const OperationOf op = operation_of(o);
  HM_REFUSE_UNLESS(spreads(op.result, op.inputs[0]), BAD_PARAM_SHAPE_MISMATCH);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_reshape(const Object& o) {
  const OperationOf op = operation_of(o);
  HM_REFUSE_UNLESS(op.inputs[0].span() == op.result.span(), BAD_PARAM_SHAPE_MISMATCH);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_graph(const Object& o) {
  const GraphOf graph(o);
  std::set<int64_t> written;
  for (const OperationOf& op : graph.operations) {
    for (const Tensor& in : op.inputs)
      HM_REFUSE_UNLESS(!in.inside || written.contains(in.id), BAD_PARAM);
    HM_REFUSE_UNLESS(!op.result.by_value, BAD_PARAM);
    HM_REFUSE_UNLESS(written.insert(op.result.id).second, BAD_PARAM_DUPLICATED_ENTRIES);
  }
  HM_REFUSE_UNLESS(!graph.operations.back().result.inside, BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_pack(const Object& o) {
  HM_REFUSE_UNLESS(o.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).size() ==
                       o.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size(),
                   BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_plan(const Object& o) {
  const Object& engine = o.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  HM_REFUSE_UNLESS(engine.engine != Engine::unfit, NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check(const Object& o) {
  for (const Rule& rule : kRules)
    HM_REFUSE_UNLESS(rule.of != o.type || !rule.required || o.values.contains(rule.name),
                     BAD_PARAM);
  switch (o.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return check_tensor(o);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return check_window(o);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return check_convolution(o);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return check_pointwise(o);
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return check_matmul(o);
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return check_reduction(o);
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return check_reshape(o);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return check_graph(o);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return check_plan(o);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return check_pack(o);
    default:
      return CUDNN_STATUS_SUCCESS;
  }
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
  const auto* const rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) {
    return r.of == o.type && r.name == name;
  });
  HM_REFUSE_UNLESS(rule != std::end(kRules), BAD_PARAM);
  HM_REFUSE_UNLESS(rule->type == type, BAD_PARAM_ATTRIBUTE_TYPE);
  HM_REFUSE_UNLESS(count > 0 && count <= rule->most, BAD_PARAM_OUT_OF_BOUND);
  const auto* const bytes = static_cast<const char*>(values);
  o.values[name].assign(bytes, bytes + static_cast<size_t>(count) * size_of(type));
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    for (const Object* const other : o.all<const Object*>(name))
      HM_REFUSE_UNLESS(other->finished, BAD_PARAM_NOT_FINALIZED);
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
