#include "core/backends/cuda/blas.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <mutex>

#include "core/backends/cuda/cast.h"
#include "core/backends/cuda/runtime.h"
#include "core/error.h"
#include "core/shared_library.h"

namespace howmany::cuda {
namespace {

#define HM_CUBLASLT_CALLS(X)              \
  X(cublasLtCreate)                       \
  X(cublasLtGetVersion)                   \
  X(cublasLtGetStatusString)              \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmul)

struct Library : SharedLibrary {
  Library()
      : SharedLibrary("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR), HM_CUBLASLT_LIBRARY) {}
  HM_CUBLASLT_CALLS(HM_LIBRARY_CALL)
};

const Library& library() {
  static const Library lt;
  return lt;
}

constexpr size_t kWorkspace = size_t{32} << 20;  // as NVIDIA advises for Hopper
constexpr uint32_t kBestAlignment = 256;

void check(cublasStatus_t status, const char* what) {
  HM_ENSURE(status == CUBLAS_STATUS_SUCCESS, "[cuda] {}: {}", what,
            library().cublasLtGetStatusString(status));
}

// Owned by unique_ptr through the library's own Destroy.
template <typename T, typename Destroy>
auto owned(T* made, Destroy destroy) {
  return std::unique_ptr<T, Destroy>(made, destroy);
}

auto layout_of(const Stored& s, Precision kept = Precision::f32) {
  cublasLtMatrixLayout_t made = nullptr;
  const cudaDataType type = kept == Precision::bf16 ? CUDA_R_16BF : CUDA_R_32F;
  check(library().cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(s.rows),
                                             static_cast<uint64_t>(s.columns), s.ld),
        "matrix layout");
  auto layout = owned(made, library().cublasLtMatrixLayoutDestroy);
  const auto set = [&](cublasLtMatrixLayoutAttribute_t which, const auto& value) {
    check(library().cublasLtMatrixLayoutSetAttribute(made, which, &value, sizeof value),
          "matrix layout");
  };
  if (s.batch > 1) {
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(s.batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, s.apart);
  }
  return layout;
}

auto description_of(const Product& p) {
  cublasLtMatmulDesc_t made = nullptr;
  const bool tf32 = p.inputs == Precision::tf32;
  check(library().cublasLtMatmulDescCreate(
            &made, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "matmul description");
  auto description = owned(made, library().cublasLtMatmulDescDestroy);
  const auto set = [&](cublasLtMatmulDescAttributes_t which, const auto& value) {
    check(library().cublasLtMatmulDescSetAttribute(made, which, &value, sizeof value),
          "matmul attribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, first_of(p).operation);
  set(CUBLASLT_MATMUL_DESC_TRANSB, second_of(p).operation);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
  if (p.bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  return description;
}

auto preference_of(const ProblemKey& key) {
  cublasLtMatmulPreference_t made = nullptr;
  check(library().cublasLtMatmulPreferenceCreate(&made), "matmul preference");
  auto preference = owned(made, library().cublasLtMatmulPreferenceDestroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
    check(library().cublasLtMatmulPreferenceSetAttribute(made, which, &value, sizeof value),
          "matmul preference");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.align_b);  // its first is our b
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.align_a);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.align_y);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.align_y);
  return preference;
}

// One for each GPU: all its products go through one stream, so one workspace serves them.
struct PerDevice {
  std::once_flag once;
  cublasLtHandle_t handle = nullptr;
  void* workspace = nullptr;
};

PerDevice& per_device(int device) {
  static auto* const all = new std::array<PerDevice, 64>;
  PerDevice& one = all->at(static_cast<size_t>(device));
  std::call_once(one.once, [&] {
    check(library().cublasLtCreate(&one.handle), "cublasLtCreate");
    cuda::check(cudaMalloc(&one.workspace, kWorkspace), "workspace");
  });
  return one;
}

// Everything of a call but the algorithm.
struct Call {
  explicit Call(const Product& p)
      : description(description_of(p)),
        a(layout_of(first_of(p), p.inputs)),
        b(layout_of(second_of(p), p.inputs)),
        y(layout_of(result_of(p))) {}
  decltype(description_of(Product{})) description;
  decltype(layout_of(Stored{})) a, b, y;
};

cublasLtMatmulAlgo_t ask(const Call& call, const ProblemKey& key, cublasLtHandle_t handle) {
  const auto preference = preference_of(key);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  check(library().cublasLtMatmulAlgoGetHeuristic(handle, call.description.get(), call.a.get(),
                                                 call.b.get(), call.y.get(), call.y.get(),
                                                 preference.get(), 1, &best, &found),
        "matmul heuristic");
  HM_ENSURE(found > 0, "[cuda] cuBLASLt has no algorithm for [{},{}] x [{},{}]", key.m, key.k,
            key.k, key.n);
  return best.algo;
}

cublasLtMatmulAlgo_t algorithm_for(const Call& call, const ProblemKey& key,
                                   cublasLtHandle_t handle) {
  static std::mutex mutex;
  static auto* const known = new std::map<ProblemKey, cublasLtMatmulAlgo_t>;
  const std::lock_guard lock(mutex);
  const auto found = known->find(key);
  if (found != known->end()) return found->second;
  return known->emplace(key, ask(call, key, handle)).first->second;
}

void multiply_as_it_lies(const Product& p, int device, const OnDevice& on) {
  const PerDevice& own = per_device(device);
  const Call call(p);
  const cublasLtMatmulAlgo_t algorithm = algorithm_for(call, key_of(p, device), own.handle);
  const float beta = p.accumulate ? 1 : 0;
  check(library().cublasLtMatmul(own.handle, call.description.get(), &p.factor, p.b, call.a.get(),
                                 p.a, call.b.get(), &beta, p.y, call.y.get(), p.y, call.y.get(),
                                 &algorithm, own.workspace, kWorkspace, on.stream()),
        "matmul");
}

// The copies are the stream's to keep until the product is done, as all memory of the pool.
void multiply_halves(Product p, int device, const OnDevice& on) {
  const auto copy = [&](const void*& data, int64_t rows, int64_t columns, int64_t& stride,
                        int64_t& apart) {
    Half half = half_of({static_cast<const float*>(data), rows, columns,
                         stride > 0 ? stride : columns, p.batch, apart},
                        {DeviceType::cuda, device}, on);
    data = half.room.raw();
    stride = half.stride;
    apart = half.apart;
    return half;
  };
  const Half a =
      copy(p.a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.strides.a, p.apart.a);
  const Half b =
      copy(p.b, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.strides.b, p.apart.b);
  multiply_as_it_lies(p, device, on);
}

// The sum of no products.
void nothing(const Product& p, const OnDevice& on) {
  HM_REQUIRE(p.bias == nullptr && p.batch == 1 && p.strides.y == 0,
             "[cuda] a bias, a batch or rows apart with nothing to add: inner size 0");
  const auto bytes = static_cast<size_t>(p.m * p.n) * sizeof(float);
  if (!p.accumulate) cuda::check(cudaMemsetAsync(p.y, 0, bytes, on.stream()), "matmul");
}

}  // namespace

Stored first_of(const Product& p) {
  const int64_t rows = p.transpose_b ? p.k : p.n, columns = p.transpose_b ? p.n : p.k;
  return {rows,
          columns,
          p.strides.b > 0 ? p.strides.b : rows,
          p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
          p.batch,
          p.apart.b};
}

Stored second_of(const Product& p) {
  const int64_t rows = p.transpose_a ? p.m : p.k, columns = p.transpose_a ? p.k : p.m;
  return {rows,
          columns,
          p.strides.a > 0 ? p.strides.a : rows,
          p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
          p.batch,
          p.apart.a};
}

Stored result_of(const Product& p) {
  return {p.n, p.m, p.strides.y > 0 ? p.strides.y : p.n, CUBLAS_OP_N, p.batch, p.apart.y};
}

cublasLtEpilogue_t epilogue_of(const Product& p) {
  if (p.bias == nullptr) return p.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
  return p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
}

uint32_t alignment_of(const void* p, int64_t apart) {
  const auto address = reinterpret_cast<uintptr_t>(p) | static_cast<uintptr_t>(apart);
  return address == 0
             ? kBestAlignment
             : std::min(kBestAlignment, uint32_t{1} << std::min(std::countr_zero(address), 8));
}

ProblemKey key_of(const Product& p, int device) {
  constexpr int64_t kF32 = sizeof(float);
  const int64_t input = p.inputs == Precision::bf16 ? 2 : kF32;
  return {device,
          p.m,
          p.n,
          p.k,
          p.transpose_a,
          p.transpose_b,
          p.accumulate,
          epilogue_of(p),
          alignment_of(p.a, input * p.apart.a),
          alignment_of(p.b, input * p.apart.b),
          alignment_of(p.y, kF32 * p.apart.y),
          alignment_of(p.bias),
          p.strides,
          p.batch,
          p.apart,
          p.inputs};
}

void multiply(const Product& p, int device) {
  if (p.m == 0 || p.n == 0) return;
  const OnDevice on(device);
  if (p.k == 0) return nothing(p, on);
  Product read = p;
  read.inputs = current_precision();
  if (read.inputs == Precision::bf16)
    multiply_halves(read, device, on);
  else
    multiply_as_it_lies(read, device, on);
}

std::string blas_version() {
  const size_t v = library().cublasLtGetVersion();
  return fmt::format("cuBLASLt {}.{}.{}", v / 10'000, v / 100 % 100, v % 100);
}

}  // namespace howmany::cuda
