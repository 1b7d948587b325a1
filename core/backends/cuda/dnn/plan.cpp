// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/dnn/plan.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "core/backends/cuda/dnn/library.h"
#include "core/backends/cuda/graph/capture.h"
#include "core/backends/cuda/runtime/pause.h"
#include "core/backends/cuda/runtime/tuning.h"
#include "core/base/error.h"
#include "core/gpu/fallbacks.h"

namespace howmany::cuda::dnn {
namespace {

constexpr size_t kTried = 10;  // as PyTorch's benchmark mode
constexpr int kRuns = 3;       // timed runs, after a warm-up
constexpr int64_t kMaxWorkspace = int64_t{1} << 30;

}  // namespace

std::vector<Descriptor> advised(const Graph& graph, cudnnBackendHeurMode_t mode,
                                const Descriptor* gpu) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.refer(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.finished())
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (gpu != nullptr) heuristics.refer(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *gpu);
  if (!heuristics.try_finish()) return {};
  const auto take = [&](size_t most, cudnnBackendDescriptor_t* into) {
    return heuristics.take(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, most,
                           into);
  };
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (size_t count = take(0, nullptr); found.size() < count;)
    raw.push_back(found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).raw());
  found.erase(
      found.begin() + static_cast<ptrdiff_t>(raw.empty() ? 0 : take(raw.size(), raw.data())),
      found.end());
  return found;
}

namespace {

struct Notes {
  bool wanted, compiled;
};
Notes notes_of(const Descriptor& configuration, bool tensor_cores) {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.raw();
  configuration.take(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  const auto numerical = engine.get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const auto behavior = engine.get<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                               CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  const bool compiled =
      std::ranges::find(behavior, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != behavior.end();
  return {is_wanted(numerical, tensor_cores), compiled};
}

std::optional<Engine> made_ready(Descriptor configuration) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.refer(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (!plan.try_finish()) return std::nullopt;
  const auto bytes = plan.get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1);
  if (bytes.at(0) > kMaxWorkspace) return std::nullopt;
  return Engine{std::move(configuration), std::move(plan), bytes[0]};
}

// A graph and the engine that computes it, by its place among engines_for(). Other threads may run
// an engine that was replaced, so it is kept.
class Plan {
 public:
  Plan(Graph graph, bool tensor_cores, Engine engine, int64_t place)
      : graph_(std::move(graph)), tensor_cores_(tensor_cores) {
    use(std::move(engine), place);
  }
  const Graph& graph() const { return graph_; }
  const Engine& engine() const { return *now_.load(); }

  // Does nothing if there is no such engine.
  void use(int64_t place) {
    if (place == place_) return;
    std::vector<Engine> engines = engines_for(graph_, tensor_cores_, kTried);
    if (place >= 0 && place < static_cast<int64_t>(engines.size()))
      use(std::move(engines[static_cast<size_t>(place)]), place);
  }

 private:
  void use(Engine engine, int64_t place) {
    now_ = all_.emplace_back(std::make_unique<Engine>(std::move(engine))).get();
    place_ = place;
  }

  const Graph graph_;
  const bool tensor_cores_;
  int64_t place_ = -1;
  std::vector<std::unique_ptr<Engine>> all_;
  std::atomic<const Engine*> now_ = nullptr;
};

Tuning::Key key_in_table(const std::vector<int64_t>& key, int device) {
  Tuning::Key whole = tuning_key(TunedLibrary::dnn, device);
  whole.insert(whole.end(), key.begin(), key.end());
  return whole;
}

// A cuDNN handle is not thread-safe. The lock is never held during a wait for the GPU, because the
// GPU may wait for work that another thread has yet to enqueue.
class PerDevice {
 public:
  cudnnHandle_t handle() {  // null if cuDNN does not provide one
    const std::lock_guard lock(mutex_);
    if (!std::exchange(tried_, true)) open();
    return handle_;
  }
  // Returns nullopt if the key is unknown, null if it has no engine. Plans are never removed.
  std::optional<const Plan*> find(const std::vector<int64_t>& key) {
    const std::lock_guard lock(mutex_);
    const auto known = plans_.find(key);
    return known == plans_.end() ? std::nullopt : std::optional(known->second.get());
  }
  const Plan* keep(const std::vector<int64_t>& key, std::unique_ptr<Plan> plan) {
    const std::lock_guard lock(mutex_);
    return plans_.try_emplace(key, std::move(plan)).first->second.get();
  }
  void use_tuning(int device) {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, plan] : plans_)
      if (const auto place = Tuning::table().find(key_in_table(key, device)); plan && place)
        plan->use(*place);
  }
  void execute(const Engine& engine, const Descriptor& pack, const OnDevice& on) {
    const std::lock_guard lock(mutex_);
    check(library().cudnnSetStream(handle_, on.stream()), "stream");
    check(library().cudnnBackendExecute(handle_, engine.plan.raw(), pack.raw()), "execution");
    // The stream of a capture ends with the capture.
    if (current_capture != nullptr)
      check(library().cudnnSetStream(handle_, stream_of(current_capture->index)), "stream");
  }

 private:
  void open() try { check(library().cudnnCreate(&handle_), "handle"); } catch (const Error&) {
    handle_ = nullptr;
  }

  std::mutex mutex_;
  bool tried_ = false;
  cudnnHandle_t handle_ = nullptr;
  std::map<std::vector<int64_t>, std::unique_ptr<Plan>> plans_;
};

constexpr int kMaxDevices = 64;

PerDevice& of_device(int device) {
  static auto* const all = new std::array<PerDevice, kMaxDevices>;
  return all->at(static_cast<size_t>(device));
}

void execute(const Engine& engine, const Graph& graph, const Places& places, Device device,
             const OnDevice& on) {
  // Pool memory is freed in stream order, so it lives until the engine completes.
  Tensor room = Tensor::empty({engine.workspace}, Dtype::u8, device);
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, graph.ids())
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span(places))
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, room.mutable_raw())
      .finish("variant pack");
  of_device(device.index).execute(engine, pack, on);
}

struct Met {
  std::mutex mutex;
  std::vector<gpu::Fallback> fallbacks;
  std::vector<gpu::EngineChoice> engines;
};
Met& operations_met() {
  static auto* const one = new Met;
  return *one;
}

// Returns the number by which cuDNN knows the engine; -1 if it does not say.
int64_t number_of(const Engine& engine) try {
  const Descriptor known(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = known.raw();
  engine.configuration.take(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  const auto number = known.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1);
  return number.empty() ? -1 : number[0];
} catch (const Error&) {
  return -1;
}

void add_engine(const Problem& problem, const Engine& engine, size_t tried) {
  Met& met = operations_met();
  const std::string text = fmt::format("engine {}, the fastest of {}", number_of(engine), tried);
  const std::lock_guard lock(met.mutex);
  met.engines.push_back({problem.what(), text});
}

// Returns milliseconds, or infinity if the run fails: `why` is then the reason.
template <typename Run>
float time_of(const Run& run, const OnDevice& on, std::string& why) try {
  run();
  pause(on);
  const auto begin = recorded(on.stream(), cudaEventDefault);
  for (int i = 0; i < kRuns; ++i) run();
  const auto end = recorded(on.stream(), cudaEventDefault);
  cuda::check(cudaEventSynchronize(end.get()), "event");
  float time = 0;
  cuda::check(cudaEventElapsedTime(&time, begin.get(), end.get()), "event");
  return time;
} catch (const Error& error) {
  why = error.what();
  return std::numeric_limits<float>::infinity();
}

// Returns the place of the fastest engine, or -1 if none works.
int64_t fastest(std::span<const Engine> engines, const Graph& graph, const Places& places,
                Device device, const OnDevice& on, std::string& why) {
  float least = std::numeric_limits<float>::infinity();
  int64_t best = -1;
  for (size_t i = 0; i < engines.size(); ++i) {
    const float time = time_of([&] { execute(engines[i], graph, places, device, on); }, on, why);
    if (time < least) best = static_cast<int64_t>(i), least = time;
  }
  return best;
}

// Returns a plan with the engine of the table of choices, else with the fastest of the first few.
// Returns null if there is none.
std::unique_ptr<Plan> choose(const Problem& problem, const Places& places, Device device,
                             const OnDevice& on) {
  Graph graph = problem.graph();
  graph.finish(of_device(device.index).handle());
  std::vector<Engine> engines = engines_for(graph, problem.tensor_cores, kTried);
  const Tuning::Key key = key_in_table(problem.key, device.index);
  const auto exists = [&](int64_t place) {
    return place >= 0 && place < static_cast<int64_t>(engines.size());
  };
  int64_t place = Tuning::table().find(key).value_or(-1);
  if (!exists(place)) {
    std::string why = "no engine";
    const int64_t own = fastest(engines, graph, places, device, on, why);
    if (own < 0) {
      add_fallback(problem.what(), why);
      return nullptr;
    }
    const int64_t kept = Tuning::table().keep(key, own);
    place = exists(kept) ? kept : own;
  }
  add_engine(problem, engines[static_cast<size_t>(place)], engines.size());
  return std::make_unique<Plan>(std::move(graph), problem.tensor_cores,
                                std::move(engines[static_cast<size_t>(place)]), place);
}

}  // namespace

bool is_wanted(std::span<const cudnnBackendNumericalNote_t> notes, bool tensor_cores) {
  const auto is_cores = [](auto note) { return note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE; };
  return std::ranges::any_of(notes, is_cores) == tensor_cores &&
         std::ranges::all_of(notes, [&](auto note) {
           return is_cores(note) || note == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP;
         });
}

bool is_wanted(const Descriptor& configuration, bool tensor_cores) {
  return notes_of(configuration, tensor_cores).wanted;
}

std::vector<Engine> engines_for(const Graph& graph, bool tensor_cores, size_t most,
                                const Descriptor* gpu) {
  std::vector<Engine> found;
  bool compiled = false;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Descriptor& configuration : advised(graph, mode, gpu)) {
      if (found.size() == most) return found;
      const Notes notes = notes_of(configuration, tensor_cores);
      if (!notes.wanted || (notes.compiled && compiled)) continue;
      auto engine = made_ready(std::move(configuration));
      if (!engine) continue;
      found.push_back(std::move(*engine));
      compiled = compiled || notes.compiled;
    }
    if (!found.empty()) break;
  }
  return found;
}

bool compute(const Problem& problem, const std::function<Places()>& places, Device device,
             const OnDevice& on) {
  PerDevice& own = of_device(device.index);
  auto plan = own.find(problem.key);
  if (!plan && current_capture != nullptr) return false;
  if (!plan && own.handle() == nullptr) {
    add_fallback("convolutions and attention", "cuDNN refuses this GPU");
    return false;
  }
  if (plan && *plan == nullptr) return false;
  const Places found = places();
  if (!plan) plan = own.keep(problem.key, choose(problem, found, device, on));
  if (*plan == nullptr) return false;
  execute((*plan)->engine(), (*plan)->graph(), found, device, on);
  return true;
}

void add_fallback(const std::string& what, const std::string& why) {
  Met& met = operations_met();
  const std::lock_guard lock(met.mutex);
  if (std::ranges::find(met.fallbacks, what, &gpu::Fallback::what) == met.fallbacks.end())
    met.fallbacks.push_back({what, why});
}

void use_tuning() {
  for (int device = 0; device < kMaxDevices; ++device) of_device(device).use_tuning(device);
}

bool serves(int device) {
  const OnDevice on(device);
  return of_device(device).handle() != nullptr;
}

}  // namespace howmany::cuda::dnn

namespace howmany::gpu {

std::vector<Fallback> fallbacks() {
  cuda::dnn::Met& met = cuda::dnn::operations_met();
  const std::lock_guard lock(met.mutex);
  return met.fallbacks;
}

std::vector<EngineChoice> engines() {
  cuda::dnn::Met& met = cuda::dnn::operations_met();
  const std::lock_guard lock(met.mutex);
  return met.engines;
}

}  // namespace howmany::gpu
