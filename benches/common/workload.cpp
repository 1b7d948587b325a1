#include "benches/common/workload.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "benches/common/machine.h"
#include "benches/common/program.h"
#include "benches/loader/data.h"
#include "core/base/cli/number_check.h"
#include "core/base/error.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/marks.h"
#include "core/base/text/names.h"
#include "core/base/text/options.h"
#include "core/data/formats.h"
#include "core/host/cpu_limits.h"
#include "core/profile/range.h"

namespace howmany::benches {
namespace {

void require_known(std::string_view kind, std::string_view name,
                   const std::vector<std::string_view>& known) {
  if (std::ranges::find(known, name) == known.end())
    throw std::invalid_argument(unknown_name(kind, name, known));
}

// True if Slurm gave this host's tasks one GPU each and this task sees only its own, as with
// --gpus-per-task.
bool sees_its_gpu_alone(const Place& place, int ranks_here) {
  const char* const given = std::getenv("SLURM_GPUS_ON_NODE");
  return place.launcher == "srun" && ranks_here > 1 && gpu::count() == 1 && given != nullptr &&
         std::atoi(given) >= ranks_here;
}

void check_devices(const Workload& work) {
  HM_REQUIRE(!work.devices.empty(), "no device given");
  for (const Device& device : work.devices) require_here(device);
  const std::vector<Device> together = work.devices_together();
  HM_REQUIRE(
      !share_gpus(together) || work.oversubscribe,
      "a GPU is listed twice: pass --oversubscribe for a rehearsal, in which ranks share it");
  const bool shared =
      oversubscribed(together) || std::ranges::any_of(together, [](const Device& device) {
        return device.type == DeviceType::cpu && device.index >= cpu_device_count();
      });
  HM_REQUIRE(
      !shared || work.oversubscribe,
      "{} devices of {} cores each do not fit into {}: pass --oversubscribe to share cores{}",
      together.size(), work.cores_per_device, cpu_limits().because,
      std::getenv("OMPI_COMM_WORLD_SIZE") ? ", or keep mpirun from it by --bind-to none" : "");
}

}  // namespace

bool Workload::over_processes() const {
  return mode_traits(mode).over_ranks && backend != "local" && ranks() > 1;
}

std::vector<Device> Workload::devices_of(int rank) const {
  const auto each = devices.size() / static_cast<size_t>(ranks());
  const auto first = devices.begin() + static_cast<ptrdiff_t>(each) * rank;
  return {first, first + static_cast<ptrdiff_t>(each)};
}

Device Workload::device_of(int rank) const {
  return own_device ? *own_device : devices_of(rank).front();
}

std::vector<std::string> join_options(const std::vector<std::string>& pieces) {
  std::vector<std::string> modes;
  for (const std::string& piece : pieces) {
    const bool option = piece.find('=') < piece.find(':') || goes_on(piece);
    if (option && !modes.empty())
      modes.back() += "," + piece;
    else
      modes.push_back(piece);
  }
  return modes;
}

std::vector<Device> Workload::devices_together() const {
  const bool gpus = !devices.empty() && devices[0].type == DeviceType::cuda;
  const size_t most =
      (gpus ? own_gpus : own_cores) ? 1 : static_cast<size_t>(std::max(ranks_per_host, 0));
  if (most == 0 || most >= devices.size()) return devices;
  return {devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(most)};
}

void add_flags(CLI::App& app, Workload& work) {
  const std::map<std::string, OnBadImage> on_bad = {{"skip", OnBadImage::skip},
                                                    {"refuse", OnBadImage::refuse}};
  const std::map<std::string, bool> sync = {{"bucketed", true}, {"inline", false}};
  app.add_option(flag::kData, work.data, "synthetic; " + data_formats_help())->type_name("PATH");
  app.add_option(flag::kWorkers, work.workers, "loader threads in each rank (default: 2 for files)")
      ->check(CLI::Range(0, 1024));
  app.add_option("--on-bad-image", work.on_bad,
                 "images that cannot be read: refuse, or skip [refuse]")
      ->transform(CLI::CheckedTransformer(on_bad));
  add_decode(app, work.decode);
  app.add_option(flag::kKernels, work.kernels,
                 "reference, onednn or cuda (default: the best built in)");
  app.add_option_function<std::string>(
         "--precision", [&](const std::string& name) { work.precision = precision_named(name); },
         "how GPUs compute: " + fmt::format("{}", fmt::join(precision_names(), ", ")))
      ->default_str("f32");
  app.add_option("--optimizer", work.optimizer, "sgd, adam or adamw")->capture_default_str();
  app.add_option("--lr", work.optim.lr, "learning rate")
      ->check(at_least_zero())
      ->capture_default_str();
  app.add_option("--momentum", work.optim.momentum, "of sgd")
      ->check(at_least_zero())
      ->capture_default_str();
  app.add_option("--weight-decay", work.optim.weight_decay, "")
      ->check(at_least_zero())
      ->capture_default_str();
  app.add_option(flag::kSeed, work.seed, "of parameters, data and order")->capture_default_str();
  app.add_option("--sync", work.sync.bucketed, "bucketed or inline gradients in ddp")
      ->transform(CLI::CheckedTransformer(sync));
  app.add_option("--bucket-bytes", work.sync.bucket_bytes, "of gradients sent at once")
      ->check(at_least_one())
      ->capture_default_str();
  app.add_flag(flag::kSyncBatchnorm, work.sync_batchnorm,
               "batch norm by the statistics of all replicas, not of each");
  app.add_option(flag::kCoresPerDevice, work.cores_per_device, "cores of each cpu device")
      ->check(above_zero())
      ->capture_default_str();
  app.add_option(flag::kTimeout, work.timeout_seconds, "seconds a rank waits for the others")
      ->check(between(0.1, 86'400))
      ->capture_default_str();
  app.add_flag(flag::kOversubscribe, work.oversubscribe,
               "allow devices that share cores, and ranks that share a GPU");
}

void add_decode(CLI::App& app, Decode& decode) {
  const std::map<std::string, Decode> all = {{"cpu", Decode::cpu}, {"nvjpeg", Decode::nvjpeg}};
  app.add_option(flag::kDecode, decode, "JPEG decoder: cpu (the workers) or nvjpeg (the GPU)")
      ->transform(CLI::CheckedTransformer(all));
}

void check_kernels(const Workload& work) {
  require_known("kernels", work.kernels, backend_names());
  const DeviceType type = backend_named(work.kernels).device_type();
  HM_REQUIRE(std::ranges::any_of(work.devices, [&](const Device& d) { return d.type == type; }),
             "kernels {} compute on none of the devices given", work.kernels);
}

void check_backend(const Workload& work) {
  if (!work.over_processes() || !comm_traits(work.backend).gpus) return;
  HM_REQUIRE(all_gpus(work.devices) && !share_gpus(work.devices_together()),
             "backend {} needs a GPU for each rank, and the devices are not: give them with "
             "--devices, or take another --backend",
             work.backend);
}

// Each host makes its rows in its own memory, also for GPUs.
void check_memory(const Workload& work, const ModelSpec& model) {
  const double hosts = static_cast<double>(work.count()) /
                       static_cast<double>(std::max<size_t>(1, work.devices_together().size()));
  const double bytes = static_cast<double>(model.sample.numel()) *
                       static_cast<double>(size_of(model.input)) *
                       static_cast<double>(work.global_batch) / hosts;
  HM_REQUIRE(bytes <= memory_bytes(),
             "a batch of {} samples is {:.3g} GB of inputs, more than the memory here ({:.3g} GB)",
             work.global_batch, bytes / 1e9, memory_bytes() / 1e9);
}

// Each rank holds and shuffles the indices of all samples.
void check_order(const Workload& work) {
  const double ranks = static_cast<double>(work.ranks()) *
                       static_cast<double>(work.devices_together().size()) /
                       static_cast<double>(work.count());
  const double bytes = 8 * static_cast<double>(work.samples) * std::max(1.0, ranks);
  HM_REQUIRE(!work.synthetic() || bytes <= memory_bytes(),
             "the order of {} samples is {:.3g} GB, more than the memory here ({:.3g} GB)",
             work.samples, bytes / 1e9, memory_bytes() / 1e9);
}

void check(const Workload& work) {
  const ModeTraits traits = mode_traits(work.mode);
  require_known("backend", work.backend, comm_names());
  require_known("optimizer", work.optimizer, optimizer_names());
  const ModelSpec model = make_model(work.model);
  make_optimizer(work.optimizer, work.optim);
  check_devices(work);
  if (!work.kernels.empty()) check_kernels(work);
  check_precision(work.precision, work.devices);
  check_mode(work.mode, work.devices);
  for (const Device& device : work.devices) check_decode(work.decode, device);
  HM_REQUIRE(work.count() == 1 || traits.over_ranks || traits.over_devices,
             "mode {} uses one device, not {}", work.mode, work.count());
  work.ranks();
  check_backend(work);
  HM_REQUIRE(work.global_batch >= work.count(),
             "a batch of {} is smaller than {} devices: some would have nothing to do",
             work.global_batch, work.count());
  check_memory(work, model);
  check_order(work);
}

std::vector<Device> devices_from(const std::string& list, int count) {
  if (!list.empty()) return parse_devices(list);
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) devices.push_back({DeviceType::cpu, i});
  return devices;
}

bool means_gpus(const Workload& work) {
  if (gpu::count() == 0) return false;
  if (work.kernels.empty()) return true;
  require_known("kernels", work.kernels, backend_names());
  return backend_named(work.kernels).device_type() == DeviceType::cuda;
}

bool all_gpus(const std::vector<Device>& devices) {
  return std::ranges::all_of(devices,
                             [](const Device& device) { return device.type == DeviceType::cuda; });
}

bool over_hosts(const Place& place) {
  return place.local_world > 0 && place.local_world < place.world;
}

std::vector<Device> devices_given(const std::string& list, const Place& place) {
  const std::vector<Device> devices = parse_devices(list);
  const bool one_host = over_hosts(place) && static_cast<int>(devices.size()) == place.local_world;
  if (!one_host || place.world % place.local_world != 0) return devices;
  std::vector<Device> all;
  for (int host = 0; host < place.world / place.local_world; ++host)
    all.insert(all.end(), devices.begin(), devices.end());
  return all;
}

void place_devices(Workload& work, const std::string& list, const Place& place, bool gpus) {
  const bool hosts = over_hosts(place);
  work.own_device.reset();
  if (hosts) work.ranks_per_host = place.local_world;
  // SLURM_CPU_BIND is set if Slurm bound each task to its own cores.
  const char* const bound = std::getenv("SLURM_CPU_BIND");
  work.own_cores = place.launcher == "srun" && bound != nullptr &&
                   (std::strstr(bound, "mask_cpu") || std::strstr(bound, "map_cpu"));
  const int here = hosts ? place.local_world : place.world;
  work.own_gpus = sees_its_gpu_alone(place, here);
  if (!list.empty()) {
    const std::vector<Device> given = parse_devices(list);
    work.devices = devices_given(list, place);
    if (work.devices.size() != given.size() && !work.own_gpus)
      work.own_device = given[static_cast<size_t>(place.local_rank)];
    if (work.own_gpus)  // its number on other hosts does not matter
      for (Device& device : work.devices)
        if (device.type == DeviceType::cuda) device.index = 0;
    return;
  }
  HM_REQUIRE(!gpus || work.own_gpus || here <= gpu::count(),
             "{} ranks on this host, and {} GPUs: say with --devices where they are", here,
             gpu::count());
  const bool own = gpus ? work.own_gpus : work.own_cores;
  work.devices.clear();
  for (int rank = 0; rank < place.world; ++rank)
    work.devices.push_back({gpus ? DeviceType::cuda : DeviceType::cpu, own ? 0 : rank % here});
  if (hosts && !own) work.own_device = {work.devices[0].type, place.local_rank};
}

int gpu_of(const Workload& work, const Place& place) {
  if (!work.over_processes() || place.rank >= work.ranks()) return -1;
  const Device device = work.device_of(place.rank);
  return device.type == DeviceType::cuda ? device.index : -1;
}

// Each GPU needs a core for its host thread. If the launcher bound the rank to cores, that core
// must be one of them.
bool short_of_cores(const Workload& work) {
  const bool mpirun = std::getenv("OMPI_COMM_WORLD_SIZE") && !std::getenv("HOWMANY_RENDEZVOUS");
  const bool bound = work.own_cores || mpirun;
  const auto gpus = std::ranges::count(work.devices_together(), DeviceType::cuda, &Device::type);
  const int64_t fed = bound ? std::min<int64_t>(gpus, work.count() / work.ranks()) : gpus;
  return fed > cpu_limits().usable;
}

std::vector<std::string> marks_of(const Workload& work) {
  std::vector<std::string> marks;
  if (oversubscribed(work.devices_together())) marks.emplace_back(mark::kOversubscribed);
  if (share_gpus(work.devices_together())) marks.emplace_back(mark::kRehearsal);
  if (short_of_cores(work)) marks.emplace_back(mark::kShortOfCores);
  return marks;
}

Choice choose_backend(const Workload& work, const Place& place) {
  if (!mode_traits(work.mode).over_ranks) return {"local", work.mode + " has one rank"};
  if (place.world == 1 && work.count() == 1) return {"local", "one device has nobody to talk to"};
  const auto usable = [&](std::string_view name) {
    return std::ranges::count(comm_names(), name) > 0 && comm_unavailable(name, place).empty();
  };
  const std::vector<Device> devices = work.devices_together();
  if (all_gpus(devices) && !share_gpus(devices) && usable("nccl"))
    return {"nccl", "each rank has GPUs of its own"};
  if (usable("gloo")) return {"gloo", "ranks are processes, and gloo needs no launcher of its own"};
  if (usable("mpi")) return {"mpi", "ranks are processes, and gloo cannot be used"};
  HM_REQUIRE(place.world == 1, "no backend between processes can be used");
  return {"local", "no backend between processes is built in"};
}

}  // namespace howmany::benches
