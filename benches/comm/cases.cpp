// SPDX-License-Identifier: Apache-2.0
#include "benches/comm/cases.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>

#include "benches/comm/collectives.h"
#include "benches/common/device_choice.h"
#include "benches/common/machine.h"
#include "core/base/error.h"
#include "core/base/text/names.h"

namespace howmany::benches {
namespace {

Dtype dtype_named(const std::string& name) {
#define X(type, ctype) \
  if (name == #type) return Dtype::type;
  HM_DTYPES(X)
#undef X
#define X(type, _) #type,
  throw std::invalid_argument(unknown_name("dtype", name, {HM_DTYPES(X)}));
#undef X
}

// Powers of the factor, and odd sizes between them, which test a fit of the others.
std::set<int64_t> sizes(const BackendFlags& flags) {
  std::set<int64_t> all;
  const auto add = [&](int64_t bytes) {
    if (bytes >= flags.min_bytes && bytes <= flags.max_bytes) all.insert(bytes);
  };
  for (int64_t bytes = 4; bytes <= flags.max_bytes; bytes *= flags.factor) add(bytes);
  for (const int64_t bytes : {2'008, 40'008, 700'008, 3'000'024, 26'214'400}) add(bytes);
  add(flags.min_bytes);
  add(flags.max_bytes);
  return all;
}

std::vector<std::string> strings(const std::vector<std::string_view>& names) {
  return {names.begin(), names.end()};
}

// True if another launcher started the ranks and chose their number.
bool was_launched(const Place& place) { return place.world > 1 && place.launcher != "howmany"; }

class BackendCases {
 public:
  explicit BackendCases(const BackendFlags& flags) : flags_(flags) {
    for (const std::string& name : flags.dtypes) dtypes_.push_back(dtype_named(name));
  }

  std::vector<BackendCase> make(const Place& place) {
    std::vector<std::string> backends = flags_.backends;
    if (backends.empty()) backends = usable_backends(place);
    for (const std::string& backend : backends)
      for (const int n : counts(backend, place)) add_backend(workload(backend, n, place));
    return std::move(cases_);
  }

 private:
  // Returns the backends that work for the devices in use and for the way these processes were
  // started.
  std::vector<std::string> usable_backends(const Place& place) const {
    const bool launched = was_launched(place);
    const bool gpus = flags_.devices.empty() ? launched && means_gpus(flags_.work)
                                             : all_gpus(parse_devices(flags_.devices));
    std::vector<std::string> names = strings(comm_names());
    std::erase_if(names, [&](const std::string& name) {
      const CommTraits traits = comm_traits(name);
      return (traits.gpus && !gpus) || (launched && !traits.processes) ||
             !comm_unavailable(name, place).empty();
    });
    return names;
  }

  // Threads all run on this host.
  std::vector<Device> devices_for(const std::string& backend, const Place& place) const {
    return backend == "local" ? parse_devices(flags_.devices)
                              : devices_given(flags_.devices, place);
  }

  std::vector<int> counts(const std::string& backend, const Place& place) const {
    if (!flags_.counts.empty()) return flags_.counts;
    if (!flags_.devices.empty()) return {static_cast<int>(devices_for(backend, place).size())};
    return {was_launched(place) ? place.world : 2};
  }

  Workload workload(const std::string& backend, int n, const Place& place) const {
    Workload work = flags_.work;
    work.mode = "ddp";
    work.backend = backend;
    work.devices = flags_.devices.empty() ? devices_from("", n) : devices_for(backend, place);
    const bool gpus = place.launcher != "howmany" && means_gpus(work);
    if (place.world > 1 && backend != "local") place_devices(work, flags_.devices, place, gpus);
    HM_REQUIRE(n <= work.count(), "--device-count {} of {} --devices", n, work.count());
    work.devices.resize(static_cast<size_t>(n));
    work.global_batch = n;
    benches::check(work);
    return work;
  }

  std::vector<std::string> operations() const {
    std::vector<std::string_view> known = collective_names();
    known.emplace_back(kOverlap);
    for (const std::string& op : flags_.ops)
      if (std::ranges::find(known, op) == known.end())
        throw std::invalid_argument(unknown_name("operation", op, known));
    return flags_.ops.empty() ? strings(known) : flags_.ops;
  }

  // Small sizes come first over all operations, so that only the largest sizes are lost if time
  // runs out.
  void add_backend(const Workload& work) {
    std::vector<std::string> ops = operations();
    const bool overlap = std::erase(ops, kOverlap) > 0;
    if (work.count() > 1) add(work, "pace", Dtype::f32, 0);
    for (const std::string& model : flags_.models) {
      const ModelBuckets buckets = model_buckets(model);
      for (const int64_t bytes : buckets.bytes)
        add(work, "all_reduce", Dtype::f32, bytes, buckets.name);
    }
    for (const int64_t bytes : sizes(flags_))
      for (const Dtype dtype : dtypes_)
        for (const std::string& op : ops) add(work, op, dtype, bytes);
    if (overlap && work.count() > 1)
      add(work, kOverlap, Dtype::f32, std::min(int64_t{4} << 20, flags_.max_bytes));
  }

  void add(const Workload& work, const std::string& op, Dtype dtype, int64_t bytes,
           const std::string& model = "") {
    const int n = work.count();
    if (op == "send_recv" && n == 1) return;
    if (op != "pace" && op != kOverlap) bytes = counted_bytes(op, dtype, bytes, n);
    const std::string name = fmt::format("backend/{}/{}/dtype:{}/devices:{}/bytes:{}", op,
                                         work.backend, name_of(dtype), n, bytes);
    if (names_.insert(name).second || !model.empty())
      cases_.push_back(
          {model.empty() ? name : name + "/model:" + model, op, model, work, dtype, bytes});
  }

  const BackendFlags& flags_;
  std::vector<Dtype> dtypes_;
  std::set<std::string> names_;
  std::vector<BackendCase> cases_;
};

constexpr size_t kMaxBuckets = 1000;

// The buckets of ddp: parameters in reverse order, each at the start of a cache line.
std::vector<int64_t> own_buckets(const std::string& model) {
  const ModelSpec spec = make_model(model);
  std::vector<int64_t> bytes, buckets;
  for (const Param* param : std::views::reverse(trainable_params(*spec.layer)))
    bytes.push_back(param->shape.numel() * 4);
  auto next = bytes.begin();
  for (const size_t length : bucket_lengths(bytes, {})) {
    buckets.push_back(0);
    for (size_t i = 0; i < length; ++i) buckets.back() += (*next++ + 63) / 64 * 64;
  }
  buckets.back() += 4;  // the loss
  return buckets;
}

int64_t parsed_bytes(const std::string& text) {
  int64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  HM_REQUIRE(error == std::errc() && end == text.data() + text.size() && bytes > 0 &&
                 bytes <= int64_t{1} << 40,
             "\"{}\" is not the bytes of a bucket", text);
  return bytes;
}

}  // namespace

std::vector<BackendCase> backend_cases(const BackendFlags& flags, const Place& place) {
  return BackendCases(flags).make(place);
}

ModelBuckets model_buckets(const std::string& model) {
  // Specifications of our models have "=" after ":".
  const size_t equals = model.substr(0, model.find(':')).find('=');
  if (equals == std::string::npos) return {model, own_buckets(model)};
  ModelBuckets buckets{model.substr(0, equals), {}};
  for (size_t at = equals + 1; at <= model.size();) {
    const size_t end = std::min(model.find(',', at), model.size());
    buckets.bytes.push_back(parsed_bytes(model.substr(at, end - at)));
    at = end + 1;
  }
  HM_REQUIRE(!buckets.name.empty() && buckets.bytes.size() <= kMaxBuckets,
             "\"{}\" is not NAME=BYTES,BYTES with at most {} buckets", model, kMaxBuckets);
  return buckets;
}

std::set<std::string> process_backends(const std::vector<BackendCase>& cases) {
  std::set<std::string> found;
  for (const BackendCase& c : cases)
    if (c.work.over_processes()) found.insert(c.work.backend);
  return found;
}

int processes_needed(const std::vector<BackendCase>& cases) {
  int most = 1;
  for (const BackendCase& c : cases)
    if (c.work.over_processes()) most = std::max(most, c.work.count());
  return most;
}

// Uses at most half of the free memory, so that the measurement does not make the machine swap.
std::string too_large(const BackendCase& c) {
  const auto memory = describe_memory();
  double free = memory["available_bytes"].get<double>();
  if (!memory["limit_bytes"].is_null()) free = std::min(free, memory["limit_bytes"].get<double>());
  const double need = static_cast<double>(buffer_bytes(c.op, c.bytes, c.work.count())) * 2 *
                      (c.work.ranks_per_host > 0 ? c.work.ranks_per_host : c.work.count());
  if (need <= free / 2) return "";
  return fmt::format("buffers of {:.1f} GB in {:.1f} GB of free memory", need / 1e9, free / 1e9);
}

}  // namespace howmany::benches
