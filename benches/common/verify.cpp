// SPDX-License-Identifier: Apache-2.0
#include "benches/common/verify.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <span>

#include "benches/common/trainer.h"
#include "core/base/error.h"
#include "core/gpu/tuning.h"
#include "core/ops/ops.h"

namespace howmany::benches {
namespace {

// Relative tolerances against `single` in the same precision and against the f32 reference. The
// order of f32 sums differs between modes. If a value is then rounded to a shorter format, one bit
// of f32 can become one bit of that format.
struct Tolerance {
  double single, reference;
};
Tolerance tolerance_of(Precision precision) {
  if (precision == Precision::bf16) return {1e-2, 0.1};
  return precision == Precision::tf32 ? Tolerance{1e-3, 1e-2} : Tolerance{1e-4, 1e-3};
}
// The device type determines which values are rounded, so one device does not round like a mix of
// types.
double tolerance_of_single(const Workload& work) {
  const auto as_first = [&](const Device& d) { return d.type == work.devices[0].type; };
  const Tolerance all = tolerance_of(work.precision);
  return std::ranges::all_of(work.devices, as_first) ? all.single : all.reference;
}

constexpr double kAffordableFlop = 5e8;  // about one second of the reference
constexpr int kTuningSteps = 2;
constexpr std::chrono::minutes kSettling{10};  // of the slowest rank
constexpr int64_t kFewRows[] = {2, 4, 8, 16};
// Products are computed in tiles of at most 256 rows. These counts fill one and begin another.
constexpr int64_t kRowsAboveATile[] = {272, 304, 336};

double norm(const Tensor& t) {
  double squares = 0;
  const Tensor host = t.to(Device{});
  for (const float v : host.values<float>()) squares += static_cast<double>(v) * v;
  return std::sqrt(squares);
}

double distance(const Tensor& a, const Tensor& b) {
  double squares = 0;
  const Tensor left = a.to(Device{}), right = b.to(Device{});
  const auto x = left.values<float>(), y = right.values<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(x[i]) - y[i];
    squares += d * d;
  }
  return std::sqrt(squares);
}

// Copies the rows, so that they are aligned as a rank's own batch is.
Batch rows_of(const Batch& batch, int64_t begin, int64_t end) {
  return {batch.x.rows(begin, end).clone(), batch.y.rows(begin, end).clone(), batch.global_rows,
          batch.first_row + begin};
}

std::unique_ptr<Mode> single(const Workload& work, Device device) {
  return make_mode("single",
                   {.model = make_model(work.model), .seed = work.seed, .devices = {device}});
}

Batch first_batch(const Workload& work, const Dataset& data, Device device) {
  LoaderOptions options = loader_options(work, {}, device);
  options.workers = 0;
  Loader whole(data, options);
  whole.start_epoch(0);
  return *whole.next();
}

Tensor rounded(const Tensor& t) {
  return t.dtype() == Dtype::f32 ? t.to(Dtype::bf16).to(Dtype::f32) : t;
}

// True if the reference fails the tolerance too once its weights and samples are rounded to bf16.
// Batch norm of few values and signs of activations can enlarge a rounding error to any size.
bool is_moved_by_rounding(const Workload& work, const Batch& batch, Device device,
                          const StepResult& reference) {
  const std::unique_ptr<Mode> mode = single(work, device);
  for (Param* p : mode->params()) p->value.copy_from(rounded(p->value));
  Batch near = batch;
  near.x = rounded(batch.x);
  const double loss = mode->step(near).value();
  return !difference(reference, loss, mode->gradients(), tolerance_of(work.precision).reference)
              .empty();
}

// Returns the first difference, empty if there is none, or nothing if bf16 alone explains it.
std::optional<std::string> compare_kernels_on(const Workload& work, int64_t rows, Device device) {
  Workload some = work;
  some.data = "synthetic";
  some.samples = some.global_batch = rows;
  some.seed = work.seed + static_cast<uint64_t>(rows);
  const Batch batch = first_batch(some, *open_dataset(some), device);
  const std::unique_ptr<Mode> chosen = single(some, device);
  const double loss = chosen->step(batch).value();
  const KernelScope plain("reference");
  const Device beside = device.type == DeviceType::cpu ? device : Device{};
  const StepResult reference = expected_step(some, batch, {0, rows}, beside);
  const std::string wrong =
      difference(reference, loss, chosen->gradients(), tolerance_of(work.precision).reference);
  if (wrong.empty() || work.precision != Precision::bf16) return wrong;
  if (is_moved_by_rounding(some, batch, beside, reference)) return {};
  return wrong;
}

// Correct kernels may differ on some rows: batch norm of two values leaves mostly rounding errors,
// and another order of summation can change the sign of an activation. Wrong kernels differ on all
// rows. So this tries one count of rows after another until one agrees. If bf16 explains every
// difference, the kernels cannot be judged, as if the reference took too long.
std::string compare_kernels(const Workload& work, Device device, std::span<const int64_t> counts) {
  std::string wrong;
  for (const int64_t rows : counts) {
    const std::optional<std::string> found = compare_kernels_on(work, rows, device);
    if (found && found->empty()) return "";
    if (found) wrong = *found;
  }
  return wrong;
}

bool affordable(const Trainer& trainer, int64_t rows) {
  return trainer.step_flop(rows) <= kAffordableFlop;
}

// A kernel of a GPU may be wrong in full tiles only, which few rows do not fill.
std::string compare_kernels(const Workload& work, const Trainer& trainer, Device device) {
  if (!affordable(trainer, kFewRows[0])) return "";
  const std::string wrong = compare_kernels(work, device, kFewRows);
  const bool tiles = device.type == DeviceType::cuda && affordable(trainer, kRowsAboveATile[0]);
  return wrong.empty() && tiles ? compare_kernels(work, device, kRowsAboveATile) : wrong;
}

// One rank of each part computes the rows of all ranks alone while the others wait for its result.
std::chrono::milliseconds patience(double step_seconds, int ranks) {
  return std::chrono::milliseconds(30'000 + static_cast<int64_t>(20e3 * step_seconds * ranks));
}

// Returns the list of that rank. Collective.
std::vector<int64_t> broadcast(Comm& comm, const std::vector<int64_t>& own, int rank) {
  const Tensor length = Tensor::from<int64_t>({static_cast<int64_t>(own.size())}, {1});
  comm.broadcast(length, rank);
  const auto count = static_cast<int64_t>(length.item());
  if (count == 0) return {};
  const bool mine = rank == comm.rank();
  const Tensor list = mine ? Tensor::from(own, {count}) : Tensor::zeros({count}, Dtype::i64);
  comm.broadcast(list, rank);
  const auto values = list.values<int64_t>();
  return {values.begin(), values.end()};
}

// Gives every rank the choices of the lowest rank that made them.
void agree_on_tuning(Comm& comm) {
  const std::vector<int64_t> own = gpu::tuning();
  std::vector<int64_t> all;  // the last choice of a problem counts, so rank 0's are last
  for (int rank = comm.size() - 1; rank >= 0; --rank) {
    const std::vector<int64_t> list = broadcast(comm, own, rank);
    all.insert(all.end(), list.begin(), list.end());
  }
  gpu::use_tuning(all);
}

// Loads kernels and measures algorithms before any exchange.
void settle_alone(const Workload& work, const Batch& mine, Device device) {
  if (mine.x.numel() == 0) return;  // of a stage that gets no samples
  const std::unique_ptr<Mode> mode = single(work, device);
  for (int step = 0; step < kTuningSteps; ++step) mode->step(mine).value();
}

std::string examine(const Workload& work, const Dataset& data, Trainer& trainer, double loss,
                    const std::map<std::string, Tensor>& grads, Device device) {
  const Batch global = first_batch(work, data, device);
  Mode& mode = trainer.mode();
  const bool threads = work.mode == "data_parallel";
  const int shares = work.sync_batchnorm ? 1 : threads ? work.count() : mode.share().count;
  const int micro_batches = work.sync_batchnorm ? 1 : mode.micro_batches(global.global_rows);
  // Threads divide each micro-batch, ranks divide their share into micro-batches.
  const std::vector<int64_t> cuts = threads && shares > 1
                                        ? cuts_of(global.global_rows, micro_batches, shares)
                                        : cuts_of(global.global_rows, shares, micro_batches);
  const std::string wrong =
      difference(expected_step(work, global, cuts, device, settling_steps(work, mode)), loss, grads,
                 tolerance_of_single(work));
  if (!wrong.empty()) return fmt::format("{} differs from single: {}", work.mode, wrong);
  if (work.count() > 1) return "";
  const std::string odd = compare_kernels(work, trainer, device);
  return odd.empty() ? "" : "the kernels differ from the reference: " + odd;
}

}  // namespace

int settling_steps(const Workload& work, const Mode& mode) {
  return work.uses_gpu() ? std::max(mode.warm_ups(), kTuningSteps) : mode.warm_ups();
}

std::vector<int64_t> cuts_of(int64_t rows, int shares, int micro_batches) {
  std::vector<int64_t> cuts;
  for (int s = 0; s < shares; ++s) {
    const int64_t begin = Share{s, shares}.begin(rows), mine = Share{s, shares}.end(rows) - begin;
    for (int m = 0; m < micro_batches; ++m)
      cuts.push_back(begin + Share{m, micro_batches}.begin(mine));
  }
  cuts.push_back(rows);
  return cuts;
}

StepResult expected_step(const Workload& work, const Batch& global,
                         const std::vector<int64_t>& cuts, Device device, int earlier) {
  StepResult sum;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (cuts[i] == cuts[i + 1]) continue;
    // A new mode for each part, because dropout depends on the step number.
    const std::unique_ptr<Mode> mode = single(work, device);
    const Batch rows = rows_of(global, cuts[i], cuts[i + 1]);
    for (int step = 0; step < earlier; ++step) mode->step(rows);
    sum.loss += mode->step(rows).value();
    for (const Param* p : mode->params()) {
      const auto [slot, fresh] = sum.grads.emplace(p->name, p->grad);
      if (!fresh) ops::axpy(1, p->grad, slot->second);
    }
  }
  return sum;
}

std::string difference(const StepResult& expected, double loss,
                       const std::map<std::string, Tensor>& grads, double tolerance) {
  if (!(std::abs(loss - expected.loss) <= tolerance * std::max(1.0, std::abs(expected.loss))))
    return fmt::format("loss {} instead of {}", loss, expected.loss);
  double all = 0;
  for (const auto& [_, grad] : expected.grads) all = std::hypot(all, norm(grad));
  for (const auto& [name, grad] : grads) {
    const auto wanted = expected.grads.find(name);
    if (wanted == expected.grads.end()) return fmt::format("'{}' is no parameter", name);
    // A gradient that is zero except for rounding (a bias before batch norm) is compared with
    // 1e-3 of the norm of all gradients.
    const double scale = std::max(norm(wanted->second), 1e-3 * all);
    const double off = distance(grad, wanted->second);
    if (!(off <= tolerance * scale))
      return fmt::format("gradient of '{}' is off by {:.2g} of its size", name, off / scale);
  }
  return "";
}

double verify_first_step(const Workload& work, const Dataset& data, Trainer& trainer, Comm& comm,
                         Device device) {
  const Batch first = trainer.next();
  const int earlier = settling_steps(work, trainer.mode());
  const std::chrono::milliseconds usual = comm.timeout();
  if (work.uses_gpu()) comm.set_timeout(std::max<std::chrono::milliseconds>(usual, kSettling));
  if (comm.size() > 1 && comm.native_device().type == DeviceType::cuda) {
    settle_alone(work, first, device);
    comm.barrier();  // groups that split from this one have a shorter timeout
  }
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < earlier; ++step) trainer.mode().step(first);
  if (work.uses_gpu()) agree_on_tuning(comm);
  const double loss = trainer.mode().step(first).value();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  comm.set_timeout(patience(took.count(), comm.size()));
  const std::map<std::string, Tensor> grads = trainer.mode().gradients();
  std::string wrong;
  if (trainer.mode().share().index == 0) wrong = examine(work, data, trainer, loss, grads, device);
  Tensor verdict = Tensor::full({1}, wrong.empty() ? 0 : 1);
  comm.all_reduce(verdict, ReduceOp::max);
  comm.set_timeout(usual);
  if (verdict.item() != 0)
    throw WrongData(wrong.empty() ? "wrong data, see the other ranks" : "wrong data: " + wrong);
  return took.count();
}

}  // namespace howmany::benches
