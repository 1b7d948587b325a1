// SPDX-License-Identifier: Apache-2.0
#include "benches/transfer/cases.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "benches/common/machine.h"
#include "benches/common/trainer.h"
#include "benches/common/verify.h"
#include "benches/common/workload.h"
#include "benches/transfer/copies.h"
#include "benches/transfer/device_copies.h"
#include "core/base/clock.h"
#include "core/base/schema/parameters.h"
#include "core/gpu/gpu.h"

namespace howmany::benches {
namespace {

constexpr int64_t kSmallBytes = 4 << 20;  // total of many small copies

// Describes the duration of one step, and the --time-budget that is enough for `steps` such steps.
std::string why_left_out(double step_seconds, size_t steps) {
  constexpr double kIterations = 4;   // two untimed steps and a timed one, with a margin
  constexpr double kStepShare = 0.4;  // half of the time, with a margin for untimed work
  return fmt::format(
      "a step takes {:.2g} s here, which --time-budget {:.0f} has time for", step_seconds,
      std::ceil(kIterations * step_seconds * static_cast<double>(steps) / kStepShare));
}

class TransferCases {
 public:
  explicit TransferCases(const TransferFlags& flags) : flags_(flags) {}

  std::vector<TransferCase> make() {
    const int all = cpu_device_count();
    for (const int n : std::set<int>{1, std::min(2, all), all})
      for (const int64_t bytes : sizes()) add_copy(n, bytes);
    add_small_copies();
    add_loopback(64);
    add_loopback(int64_t{16} << 20);
    add_numa();
    add_devices();
    const size_t others = cases_.size();
    for (const std::string& model : flags_.models) add_step(model, others);
    return std::move(cases_);
  }

 private:
  using Parameters = std::map<std::string, std::string>;
  using Measure = std::function<Samples(const TimingOptions&)>;

  TransferCase& add(const char* kind, Parameters parameters, int64_t bytes, Measure measure) {
    std::string name = fmt::format("transfer/{}", kind);
    for (const auto& [key, value] : parameters)
      if (!value.empty()) name += "/" + key + ":" + value;
    parameters[parameter::kKind] = kind;
    cases_.push_back({name, std::move(parameters), static_cast<double>(bytes), std::move(measure)});
    return cases_.back();
  }

  void add_skipped(const char* kind, const Parameters& parameters, const std::string& why) {
    add(kind, parameters, 0, {}).skipped = why;
  }

  void add_copy(int threads, int64_t bytes) {
    add("copy",
        {{parameter::kThreads, std::to_string(threads)},
         {parameter::kBytes, std::to_string(bytes)}},
        bytes, [=](const TimingOptions& o) { return time_copy(threads, bytes, o); });
  }

  void add_small_copies() {
    for (int64_t bytes = 16; bytes <= (1 << 20); bytes *= 16)
      add("small_copies",
          {{parameter::kBytes, std::to_string(bytes)},
           {parameter::kCount, std::to_string(kSmallBytes / bytes)}},
          kSmallBytes,
          [=](const TimingOptions& o) { return time_small_copies(bytes, kSmallBytes / bytes, o); });
  }

  void add_loopback(int64_t bytes) {
    add("loopback_tcp", {{parameter::kBytes, std::to_string(bytes)}}, bytes,
        [=](const TimingOptions& o) { return time_loopback(bytes, o); });
  }

  void add_numa() {
    constexpr int64_t kBytes = 64 << 20;
    const auto nodes = describe_numa();
    if (nodes.size() < 2)
      return add_skipped("numa_copy", {}, "this machine has one NUMA node: no memory is remote");
    for (const auto& from : nodes)
      for (const auto& on : nodes) {
        const int a = from["node"].get<int>(), b = on["node"].get<int>();
        add("numa_copy",
            {{parameter::kFrom, std::to_string(a)},
             {"on", std::to_string(b)},
             {parameter::kBytes, std::to_string(kBytes)}},
            kBytes, [=](const TimingOptions& o) { return time_numa_copy(a, b, kBytes, o); });
      }
  }

  // Measures the first device by size. For the others it measures enough to see if they are as
  // fast.
  void add_devices() {
    const std::vector<Device>& all = flags_.devices;
    for (const Device& device : all)
      for (const char* kind : {"host_to_device", "device_to_host"})
        is_gpu(device) ? add_gpu_copies(kind, device, device == all[0])
                       : add_cpu_copies(kind, device);
    if (is_gpu(all[0])) {
      add_small_copies_to(all[0]);
      for (const int64_t bytes : large_sizes()) add_between(all[0], all[0], "same", bytes);
    } else {
      add_skipped("host_to_device", {{"memory", "pinned"}},
                  "pinned memory serves GPUs, and " + gpu::unavailable());
    }
    for (size_t i = 1; i < all.size(); ++i) {
      add_pair(all[0], all[i]);
      add_pair(all[i], all[0]);
    }
  }

  static bool is_gpu(Device device) { return device.type == DeviceType::cuda; }

  std::vector<int64_t> sizes() const {
    std::vector<int64_t> sizes;
    for (int64_t bytes = 64; bytes <= flags_.max_bytes; bytes *= 4)
      if (bytes >= flags_.min_bytes) sizes.push_back(bytes);
    return sizes;
  }
  // Sizes at which bandwidth matters and that do not fit into a cache.
  std::vector<int64_t> large_sizes() const {
    std::vector<int64_t> large;
    for (const int64_t bytes : {int64_t{1} << 20, int64_t{64} << 20})
      if (bytes <= flags_.max_bytes && bytes >= flags_.min_bytes) large.push_back(bytes);
    return large;
  }

  void add_host_copy(const char* kind, HostCopy copy, int64_t bytes) {
    copy.to_device = kind == std::string("host_to_device");
    copy.bytes = bytes;
    add(kind,
        {{parameter::kDevice, copy.device.str()},
         {parameter::kMemory, std::string(name_of(copy.memory))},
         {parameter::kHow, copy.together ? "async" : "sync"},
         {parameter::kBeside, copy.other_way ? "other_way" : ""},
         {parameter::kBytes, std::to_string(bytes)}},
        bytes, [=](const TimingOptions& o) { return time_host_copy(copy, o); });
  }

  void add_cpu_copies(const char* kind, Device device) {
    for (const int64_t bytes : large_sizes()) add_host_copy(kind, {.device = device}, bytes);
  }

  void add_gpu_copies(const char* kind, Device gpu, bool all_sizes) {
    const auto add_all = [&](const std::vector<int64_t>& of, HostMemory memory, bool together,
                             bool other_way = false) {
      for (const int64_t bytes : of)
        add_host_copy(
            kind, {.device = gpu, .memory = memory, .together = together, .other_way = other_way},
            bytes);
    };
    const std::vector<int64_t> large = large_sizes(), plain = all_sizes ? sizes() : large;
    add_all(plain, HostMemory::pageable, false);
    add_all(plain, HostMemory::pinned, false);
    add_all(plain, HostMemory::pinned, true);
    add_all(large, HostMemory::pinned, true, true);
    if (!all_sizes) return;
    for (const bool together : {false, true}) {
      add_all(large, HostMemory::registered, together);
      if (kind == std::string("host_to_device"))
        add_all(large, HostMemory::write_combined, together);
    }
  }

  void add_between(Device from, Device to, const std::string& path, int64_t bytes) {
    const DeviceCopy copy{.from = from, .to = to, .through_host = path == "staged", .bytes = bytes};
    add("device_to_device",
        {{parameter::kFrom, from.str()},
         {parameter::kTo, to.str()},
         {parameter::kPath, path},
         {parameter::kBytes, std::to_string(bytes)}},
        bytes, [=](const TimingOptions& o) { return time_device_copy(copy, o); });
  }

  void add_pair(Device from, Device to) {
    const bool gpus = is_gpu(from);
    const bool reach = gpus && gpu::can_reach(from.index, to.index);
    if (gpus && !reach)
      add_skipped("device_to_device", {{"from", from.str()}, {"to", to.str()}, {"path", "peer"}},
                  "neither reads the other's memory: no NVLink, and PCIe does not let them");
    for (const int64_t bytes : large_sizes()) {
      if (!gpus) add_between(from, to, "memory", bytes);
      if (reach) add_between(from, to, "peer", bytes);
      if (gpus) add_between(from, to, "staged", bytes);
    }
  }

  void add_small_copies_to(Device gpu) {
    for (int64_t bytes = 256; bytes <= kSmallBytes; bytes *= 16)
      add("small_copies_to_device",
          {{parameter::kDevice, gpu.str()},
           {parameter::kBytes, std::to_string(bytes)},
           {parameter::kCount, std::to_string(kSmallBytes / bytes)}},
          kSmallBytes, [=](const TimingOptions& o) {
            return time_small_copies_to(gpu, bytes, kSmallBytes / bytes, o);
          });
  }

  // `others`: number of the cases before the first step.
  void add_step(const std::string& model, size_t others) {
    Workload work;
    work.model = model;
    work.devices = {flags_.devices[0]};
    work.global_batch = flags_.batch > 0 ? flags_.batch : model.starts_with("resnet") ? 16 : 128;
    work.steady = true;
    work.optim.lr = 0.01;
    benches::check(work);
    const ModelSpec spec = make_model(model);
    const int64_t width = static_cast<int64_t>(size_of(spec.input));
    const int64_t in = (spec.sample.numel() * width + 8) * work.global_batch;
    const auto add_part = [&](const char* part, int64_t bytes, Measure measure) -> TransferCase& {
      return add("step",
                 {{parameter::kPart, part},
                  {parameter::kModel, model},
                  {parameter::kDevice, work.devices[0].str()},
                  {parameter::kBatch, std::to_string(work.global_batch)},
                  {parameter::kBytes, bytes > 0 ? std::to_string(bytes) : ""}},
                 bytes, std::move(measure));
    };
    // A small host copy is shorter than reading the clock. time_copy() makes many per sample.
    const auto copies = [](const HostCopy& c) {
      return [=](const TimingOptions& o) {
        return is_gpu(c.device) ? time_host_copy(c, o) : time_copy(1, c.bytes, o);
      };
    };
    const Device device = work.devices[0];
    add_part("batch_in", in, copies({.device = device, .bytes = in}));
    if (is_gpu(device))
      add_part("batch_in_pinned", in,
               copies({.device = device, .memory = HostMemory::pinned, .bytes = in}));
    add_part("loss_out", 4, copies({.device = device, .to_device = false, .bytes = 4}));
    const size_t steps = flags_.models.size();
    add_part("whole", 0, [=](const TimingOptions& o) { return time_step(work, o, steps); }).weight =
        static_cast<double>(others) / static_cast<double>(steps);
  }

  static Samples time_step(const Workload& work, const TimingOptions& options, size_t steps) {
    Samples samples;
    const DatasetPtr data = open_dataset(work);
    launch_threads(1, [&](Comm& comm) {
      const DeviceScope on(work.devices[0]);
      Trainer trainer(work, *data, comm, work.devices[0]);
      const auto step = [&] { trainer.train(trainer.next()).value(); };
      const auto timed = [&] {
        const Clock::time_point start = Clock::now();
        step();
        return seconds_since(start);
      };
      // On a GPU, these load kernels and choose algorithms, which takes seconds.
      const int settling = work.uses_gpu() ? settling_steps(work, trainer.mode()) : 0;
      for (int i = 0; i < settling; ++i) step();
      // The first step also creates contexts, plans and buffers. The second shows the usual time.
      const double first = timed(), one = first <= options.budget_seconds ? timed() : first;
      TimingOptions left = options;
      left.budget_seconds -= first;
      const auto rest = fitting(left, one);
      if (!rest) throw LeftOut(why_left_out(std::max(first, one), steps));
      samples = time_iterations(comm, *rest, step);
    });
    return samples;
  }

  const TransferFlags& flags_;
  std::vector<TransferCase> cases_;
};

}  // namespace

std::vector<TransferCase> transfer_cases(const TransferFlags& flags) {
  return TransferCases(flags).make();
}

}  // namespace howmany::benches
