// SPDX-License-Identifier: Apache-2.0
// A plain training run of any model, mode and data, started by `howmany train`.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "benches/common/device_choice.h"
#include "benches/common/program.h"
#include "benches/common/trainer.h"
#include "benches/tools/train_flags.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/text/table.h"
#include "core/base/text/utf8.h"
#include "core/data/image_folder.h"
#include "core/gpu/gpu.h"
#include "core/tensor/storage.h"
#include "parallel/sync/agreement.h"

namespace howmany::benches {
namespace {

constexpr const char* kName = "howmany-train";
using Flags = TrainFlags;

// Prints as "nan", whatever the sign of a NaN is.
double unsigned_nan(double x) { return std::isnan(x) ? std::fabs(x) : x; }

struct Epoch {
  double mean_loss = 0, seconds = 0;
  int64_t samples = 0, bytes = 0;  // tensors on rank 0's device at the end
};

std::atomic<bool> stop_wanted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

// One Ctrl-C may reach a rank twice, from the terminal and from the parent process.
void on_signal(int signal) {
  static volatile std::sig_atomic_t heard = 0;
  heard = heard + 1;
  stop_wanted = true;
  if (heard > 2) std::signal(signal, SIG_DFL);
}

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};

void catch_signals() {
  for (const int signal : kEndingSignals)
    if (std::signal(signal, on_signal) == SIG_IGN && signal == SIGHUP)
      std::signal(signal, SIG_IGN);  // nohup
}

void block_signals() {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : kEndingSignals) sigaddset(&ending, signal);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
}

// One line on a terminal, updated a few times per second.
class Progress {
 public:
  explicit Progress(bool shown) : shown_(shown && isatty(STDERR_FILENO) != 0) {}
  ~Progress() { clear(); }
  void show(const std::string& text) {
    if (!shown_ || seconds_since(last_) < 0.2) return;
    last_ = Clock::now();
    std::cerr << "\r" << text << "\x1b[K" << std::flush;
    dirty_ = true;
  }
  void clear() {
    if (dirty_) std::cerr << "\r\x1b[K" << std::flush;
    dirty_ = false;
  }

 private:
  bool shown_, dirty_ = false;
  Clock::time_point last_{};
};

// The losses of an epoch. Each is read after the next step was submitted, so that a GPU does not
// wait for it and the host is at most one step ahead.
class Losses {
 public:
  void add(StepLoss next, int64_t rows) {
    read();
    next_ = std::move(next);
    rows_ = static_cast<double>(rows);
  }
  double sum() {  // over samples
    read();
    rows_ = 0;
    return sum_;
  }
  std::optional<double> latest() const { return latest_; }

 private:
  void read() {
    if (rows_ == 0) return;
    latest_ = next_.value();
    sum_ += *latest_ * rows_;
  }

  StepLoss next_;
  double rows_ = 0, sum_ = 0;
  std::optional<double> latest_;
};

class Training {
 public:
  Training(const Flags& flags, const Dataset& data, Comm& comm, Device device)
      : flags_(flags),
        comm_(comm),
        device_(device),
        trainer_(flags.work, data, comm, device),
        progress_(comm.rank() == 0 && !flags.json && !flags.quiet) {}

  std::vector<Epoch> run() {
    std::vector<Epoch> epochs;
    while (static_cast<int>(epochs.size()) < flags_.epochs && !stopped_ && !diverged_) {
      const Epoch epoch = run_epoch(static_cast<int>(epochs.size()));
      if (epoch.samples > 0) epochs.push_back(epoch);
      progress_.clear();
      if (epoch.samples > 0 && comm_.rank() == 0 && !flags_.json)
        std::cout << fmt::format("Epoch {}, Loss: {:.4f}\n", epochs.size(),
                                 unsigned_nan(epoch.mean_loss))
                  << std::flush;
      diverged_ = on_any_rank(epoch.samples > 0 && !std::isfinite(epoch.mean_loss));
    }
    return epochs;
  }
  bool stopped() const { return stopped_; }
  bool diverged() const { return diverged_; }  // in the last epoch
  int replicas() { return trainer_.mode().share().count; }

 private:
  bool on_any_rank(bool mine) {
    const Tensor any = Tensor::full({1}, mine ? 1 : 0, Dtype::f64);
    comm_.all_reduce(any, ReduceOp::max);
    return any.item() != 0;
  }

  Epoch run_epoch(int number) {
    const auto start = Clock::now();
    Epoch epoch;
    Losses losses;
    trainer_.loader().start_epoch(number);
    while (!stopped_) {
      const std::optional<Batch> batch = trainer_.loader().next();
      if (!batch) break;
      losses.add(trainer_.train(*batch), batch->global_rows);
      epoch.samples += batch->global_rows;
      stopped_ = agreement_.any(stop_wanted);  // all ranks stop after the same step
      if (losses.latest()) show(number, epoch.samples, *losses.latest(), seconds_since(start));
    }
    epoch.mean_loss = losses.sum() / static_cast<double>(epoch.samples);
    epoch.seconds = seconds_since(start);
    const bool on_cpu = device_.type == DeviceType::cpu;
    epoch.bytes = (on_cpu ? memory_use() : gpu::memory_use(device_.index)).in_use;
    return epoch;
  }

  void show(int number, int64_t samples, double loss, double seconds) {
    progress_.show(fmt::format(
        "epoch {} of {}: {} samples, loss {:.4f}, {:.1f} s, {:.0f} samples/s", number + 1,
        flags_.epochs, samples, loss, seconds, static_cast<double>(samples) / seconds));
  }

  const Flags& flags_;
  Comm& comm_;
  const Device device_;
  Trainer trainer_;
  Progress progress_;
  Agreement agreement_{comm_};
  bool stopped_ = false, diverged_ = false;
};

nlohmann::ordered_json summary(const Flags& flags, const Dataset& data,
                               const std::vector<Epoch>& epochs, bool stopped) {
  const Workload& work = flags.work;
  std::vector<std::string> devices;
  for (const Device& device : work.devices) devices.push_back(device.str());
  nlohmann::ordered_json json = {{"schema", "howmany.train/1"},
                                 {"model", work.model},
                                 {"mode", work.mode},
                                 {"backend", work.backend},
                                 {"devices", devices},
                                 {"data", with_visible_controls(work.data)},
                                 {"samples", with_visible_controls(data.describe())},
                                 {"global_batch", work.global_batch},
                                 {"seed", work.seed},
                                 {"interrupted", stopped},
                                 {"precision", name_of(work.precision)},
                                 {"epochs", nlohmann::json::array()}};
  for (const Epoch& epoch : epochs)
    json["epochs"].push_back({{"mean_loss", epoch.mean_loss},
                              {"samples", epoch.samples},
                              {"seconds", epoch.seconds},
                              {"bytes_in_use", epoch.bytes}});
  return json;
}

void note_left_over(const Workload& work, int64_t samples, int replicas) {
  const int64_t rows = samples % work.global_batch;
  if (rows == 0 || rows >= replicas) return;
  std::cerr << fmt::format("{}: leaves out the last {} of {} samples, fewer than {} ranks\n", kName,
                           rows, samples, replicas);
}

// Reports bad images that the scan of the folder did not find.
void note_replaced(const Dataset& data) {
  const auto* images = dynamic_cast<const ImageDataset*>(&data);
  const std::vector<BadImage> bad = images ? images->replaced() : std::vector<BadImage>{};
  if (bad.empty()) return;
  std::cerr << fmt::format("{}: {} bad images replaced by others, the first is {}: {}\n", kName,
                           bad.size(), printable(bad[0].path), bad[0].why);
}

// Returns the name of the first sample that holds NaN or an infinity, or "".
std::string not_finite_sample(const Dataset& data) {
  const SampleSpec spec = data.spec();
  if (spec.x_dtype != Dtype::f32) return "";
  std::vector<float> x(static_cast<size_t>(spec.x.numel()));
  std::vector<char> y(static_cast<size_t>(spec.y.numel()) * size_of(spec.y_dtype));
  for (int64_t i = 0; i < data.size(); ++i) {
    data.get(i, 0, x.data(), y.data());
    if (!std::ranges::all_of(x, [](float v) { return std::isfinite(v); })) return data.name_of(i);
  }
  return "";
}

void note_diverged(const Dataset& data, size_t epoch) {
  const bool images = dynamic_cast<const ImageDataset*>(&data) != nullptr;
  const std::string sample = images ? "" : not_finite_sample(data);
  std::cerr << fmt::format(
      "{}: the loss is not finite from epoch {} on: {}\n", kName, epoch,
      sample.empty() ? "a lower --lr may help"
                     : fmt::format("{} holds a value that is not finite", printable(sample)));
}

int train(const Flags& flags, Place place) {
  place.gpu = gpu_of(flags.work, place);
  DatasetPtr data;  // one for all ranks of this process
  std::once_flag opened;
  std::vector<Epoch> epochs;
  bool stopped = false, diverged = false;
  Ranks ranks(place, {flags.work.backend}, flags.work.timeout_seconds);
  ranks.run(flags.work, [&](Comm& comm, Device device) {
    std::call_once(opened, [&] { data = open_dataset(flags.work, ranks.speaks()); });
    Training training(flags, *data, comm, device);
    if (comm.rank() == 0) note_left_over(flags.work, data->size(), training.replicas());
    std::vector<Epoch> mine = training.run();
    if (comm.rank() != 0) return;
    epochs = std::move(mine);
    stopped = training.stopped();
    diverged = training.diverged();
  });
  if (data) note_replaced(*data);
  if (flags.json && ranks.chief())
    std::cout << summary(flags, *data, epochs, stopped).dump(2) << "\n";
  if (stopped && ranks.chief()) std::cerr << kName << ": ended by a signal\n";
  if (diverged) note_diverged(*data, epochs.size());
  return stop_wanted ? exit_code::kInterrupted
         : diverged  ? exit_code::kMeasurementFailed
                     : exit_code::kFine;
}

int run(int argc, char** argv) {
  Flags flags;
  parse_train(argc, argv, flags);
  Workload& work = flags.work;
  configure_cpu_devices({.cores_per_device = work.cores_per_device});
  const Place place = place_from_environment();
  const ModeTraits traits = mode_traits(work.mode);
  const bool many = traits.over_ranks || traits.over_devices;
  if (place.world > 1)
    place_devices(work, flags.devices, place, means_gpus(work));
  else if (flags.devices.empty() && means_gpus(work))
    work.devices = parse_devices(many ? fmt::format("cuda:0-{}", gpu::count() - 1) : "cuda:0");
  else
    work.devices = devices_from(flags.devices, many ? cpu_device_count() : 1);
  if (work.backend == "auto") {
    const Choice choice = choose_backend(work, place);
    work.backend = choice.name;
    if (place.rank == 0 && place.launcher != "howmany" && !flags.quiet)
      std::cerr << fmt::format("{}: backend {}: {}\n", kName, choice.name, choice.because);
  }
  check(work);
  HM_REQUIRE(place.world == 1 || work.over_processes(),
             "started as rank {} of {}, but {} over {} runs in one process", place.rank,
             place.world, work.mode, work.backend);
  if (work.over_processes() && place.world == 1) {
    open_dataset(work);  // report errors here, not once per rank
    block_signals();     // until the ranks run
    catch_signals();
    return supervise(kName, argc, argv, work.ranks(), {work.backend}, work.timeout_seconds);
  }
  catch_signals();
  return train(flags, place);
}

}  // namespace
}  // namespace howmany::benches

int main(int argc, char** argv) {
  return howmany::benches::run_program("howmany-train",
                                       [&] { return howmany::benches::run(argc, argv); });
}
