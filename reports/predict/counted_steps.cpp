// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/counted_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/base/text/format.h"
#include "reports/predict/decide.h"

namespace howmany::reports {
namespace {

constexpr double kFirstBucket = 1 << 20, kBucket = 25 << 20;
constexpr double kSameSamples = 1.02;
constexpr double kShareForSteps = 0.9;  // of a device's memory; the rest is for libraries
constexpr double kManyCores = 8;        // of a GPU, for its loader
constexpr double kBytesOfGb = 1e9;

// The backward pass that each place is in or after: 0, 1, ...
std::vector<int> passes_of(const CountedStep& step) {
  std::vector<int> passes;
  int pass = 0;
  bool backward = false;
  for (const int place : step.order) {
    if (place >= 0) {
      const OpPhase phase = step.kinds[static_cast<size_t>(place)].phase;
      if (backward && phase == OpPhase::kForward) ++pass;
      backward = phase == OpPhase::kBackward;
    }
    passes.push_back(pass);
  }
  return passes;
}

std::vector<LoggedCollective> called_in(const CountedStep& step, const OpTimes& times) {
  const std::vector<int> passes = passes_of(step);
  std::vector<LoggedCollective> calls;
  for (size_t at = 0; at < step.order.size(); ++at) {
    if (step.order[at] >= 0) continue;
    const CountedCollective& one = step.collectives[static_cast<size_t>(-1 - step.order[at])];
    LoggedCollective call{.kind = one.kind,
                          .bytes = one.bytes,
                          .ranks = one.ranks,
                          .stride = one.stride,
                          .at = times.begin[at]};
    if (one.waited)
      call.waited = times.begin[*one.waited];
    else
      call.backward = passes[at];
    calls.push_back(call);
  }
  return calls;
}

// Returns the buckets that DistributedDataParallel would exchange.
std::vector<LoggedCollective> ddp_buckets(const CountedStep& step, const OpTimes& times) {
  std::vector<LoggedCollective> calls;
  LoggedCollective bucket{.backward = 0};
  for (const ReadyGradient& one : step.last_gradients()) {
    bucket.bytes += one.bytes;
    bucket.at = std::max(bucket.at, times.begin[one.place]);
    if (bucket.bytes < (calls.empty() ? kFirstBucket : kBucket)) continue;
    calls.push_back(bucket);
    bucket.bytes = 0;
  }
  if (bucket.bytes > 0) calls.push_back(bucket);
  return calls;
}

// The number of micro-batches for each exchange: all of them if gradients are exchanged once.
double micro_batches_of(const CountedStep& step) {
  const std::vector<int> passes = passes_of(step);
  std::set<int> exchanging;
  for (size_t at = 0; at < step.order.size(); ++at)
    if (step.order[at] < 0) exchanging.insert(passes[at]);
  return static_cast<double>(step.micro_batches) /
         (std::clamp(static_cast<int>(exchanging.size()), 1, step.micro_batches));
}

// The value on that number of GPUs, linear in 1 / GPUs between two counts and beyond them.
double at_share(double few, double of_few, double many, double of_many, int devices) {
  if (few == many) return of_many;
  const double per_share = (of_few - of_many) / (1 / few - 1 / many);
  return of_many + per_share * (1.0 / devices - 1 / many);
}

std::string over_memory(double reserved, const Cluster& cluster) {
  if (!cluster.memory_gb || reserved <= kShareForSteps * *cluster.memory_gb * kBytesOfGb) return "";
  return fmt::format("by the count, a step reserves {}, and 90 % of the {:g} GB of one {} are safe",
                     format_gigabytes(reserved), *cluster.memory_gb, cluster.device);
}

std::string flop_text(double flop) {
  return flop < 0.1e12 ? fmt::format("{:.3g} GFLOP", flop / 1e9)
                       : fmt::format("{:.3g} TFLOP", flop / 1e12);
}

class Counted {
 public:
  Counted(const CountedScript& script, const Cluster& cluster, const ForecastOptions& options)
      : script_(script), cluster_(cluster), options_(options), strong_(is_strong(script)) {
    for (const auto& [world, step] : script.counts) times_[world] = op_times(step, cluster.device);
    if (script.has_group() && script.largest().collectives.empty())
      throw InputError(
          "its ranks form a group, and a step calls no collective: it exchanges no "
          "gradients");
  }

  Forecast forecast() const {
    UnmeasuredSteps steps{.what = script_.name,
                          .cluster = cluster_,
                          .per_s = per_s(),
                          .steps = {},
                          .strong = strong_,
                          .of_batches = script_.alone().samples == 0,
                          .basis = basis(),
                          .next = "",
                          .counted = figures()};
    steps.steps[1] = step_on_one();
    for (const int n : counts_up_to(options_.up_to, 1))
      if (n > 1) steps.steps[n] = step_on(n);
    Forecast f = reports::forecast(steps, options_);
    f.next = next(f);
    decide(f);
    return f;
  }

 private:
  const OpTimes& alone() const { return times_.begin()->second; }

  Range per_s() const {
    const double samples = samples_of(script_.alone());
    const Range s = fed(alone().step, samples);
    return {samples / s.value, samples / s.high, samples / s.low};
  }

  // The seconds of a step, or those that the loader needs for its samples if these are more.
  Range fed(Range seconds, double samples) const {
    const double least = samples * loader_s();
    for (double Range::*end : {&Range::value, &Range::low, &Range::high})
      seconds.*end = std::max(seconds.*end, least);
    return seconds;
  }

  // Seconds of a sample, on the cores that a node of the cluster has for each GPU; 0: not known.
  double loader_s() const {
    const auto& loader = script_.alone().loader;
    if (!loader || loader->samples == 0 || !cluster_.cores_per_node) return 0;
    const double cores = static_cast<double>(*cluster_.cores_per_node) / cluster_.devices_per_node;
    return loader->core_s_per_batch / loader->samples / cores;
  }

  StepOn step_on_one() const {
    const double samples = samples_of(script_.alone());
    StepOn step{.seconds = fed(alone().step, samples), .samples = samples, .why = ""};
    step.why = over_memory(reserved_on(script_, 1), cluster_);
    return step;
  }

  static double samples_of(const CountedStep& step) { return std::max(step.samples, 1.0); }

  // If strong, each number was counted.
  StepOn step_on(int devices) const {
    const auto found = script_.counts.find(devices);
    const int world = found == script_.counts.end() ? script_.counts.rbegin()->first : devices;
    StepOn step{.seconds = {}, .samples = samples_of(script_.counts.at(world)), .why = ""};
    step.why = why_not(devices, found != script_.counts.end(), world);
    if (!step.why.empty()) return step;
    step.micro_batches = micro_batches_of(script_.counts.at(world));
    const OpTimes& times = times_.at(world);
    const auto replayed = [&](double end) {
      const double scale = end / times.step.value;
      return replayed_seconds(log_of(script_.counts.at(world), times, scale), cluster_, devices) +
             scale * more_optimizer(devices);
    };
    step.seconds =
        fed({replayed(times.step.value), replayed(times.step.low), replayed(times.step.high)},
            step.samples);
    return step;
  }

  // Seconds beyond those of the largest count.
  double more_optimizer(int devices) const {
    if (strong_) return 0;
    const auto& [few, alone] = *times_.begin();
    const auto& [many, largest] = *times_.rbegin();
    return at_share(few, alone.optimizer, many, largest.optimizer, devices) - largest.optimizer;
  }

  std::string why_not(int devices, bool counted, int world) const {
    if (const std::string why = cluster_.refusal(devices); !why.empty()) return why;
    if (strong_ && !counted)
      return "the script fails there, or its share of the batch was not counted";
    if (const std::string why = over_memory(reserved_on(script_, devices), cluster_); !why.empty())
      return why;
    return replay_refusal(log_of(script_.counts.at(world), times_.at(world)), devices);
  }

  size_t exchanges() const {
    return log_of(script_.largest(), times_.rbegin()->second).steps[0].collectives.size();
  }

  // Bytes of gradients that a rank exchanges in a step.
  double exchanged() const {
    if (!script_.has_group()) return script_.alone().gradient_bytes();
    double sum = 0;
    for (const CountedCollective& one : script_.largest().collectives)
      if (one.kind == Collective::kAllReduce || one.kind == Collective::kReduceScatter)
        sum += one.bytes;
    return sum;
  }

  double reserved() const { return script_.largest().memory.reserved; }

  // Cores of one GPU that make its batches as fast as it trains.
  double loader_cores() const {
    const CountedStep& step = script_.alone();
    if (!step.loader || step.loader->samples == 0) return 0;
    return step.loader->core_s_per_batch * samples_of(step) / step.loader->samples /
           alone().step.value;
  }

  std::string basis() const {
    const CountedStep& step = script_.alone();
    const OpTimes& t = alone();
    std::string text = fmt::format(
        "The step was counted and not measured: {} operations and {}{}, {}. By published "
        "rates of operations, one {} takes {} for it (90 % interval {} to {}){}.",
        format_count(static_cast<double>(step.operations())), flop_text(step.flop()),
        of_samples(step),
        step.way == "real" ? "computed on the CPU" : "from the shapes of its tensors",
        cluster_.device, format_seconds(t.step.value), format_seconds(t.step.low),
        format_seconds(t.step.high),
        t.host > t.gpu ? ", as long as Python needs to start its operations" : "");
    text += fmt::format(" {} of gradients {} in {}.", format_gigabytes(exchanged()),
                        script_.has_group() ? "are exchanged" : "would be exchanged by DDP",
                        number(static_cast<int64_t>(exchanges()), "collective"));
    text += fmt::format(" A step reserves {}{}.", format_gigabytes(reserved()),
                        cluster_.memory_gb ? fmt::format(" of {:g} GB", *cluster_.memory_gb) : "");
    if (strong_)
      text += fmt::format(" Every row trains {} per step.",
                          number(static_cast<int64_t>(samples_of(step)), "sample"));
    return text + loader_sentence() + answered_sentence();
  }

  static std::string of_samples(const CountedStep& step) {
    if (step.samples == 0) return "";
    return fmt::format(" of {}", number(static_cast<int64_t>(step.samples), "sample"));
  }

  std::string loader_sentence() const {
    const double cores = loader_cores();
    if (cores <= 1) return "";
    const auto needed = static_cast<int>(std::ceil(cores)),
               workers = script_.alone().loader->workers;
    std::string text =
        fmt::format(" The loader needs {} per GPU to keep up", number(needed, "core"));
    if (const auto& there = cluster_.cores_per_node)
      text += fmt::format(", and a node of {} has {:.3g} for each", cluster_.name,
                          static_cast<double>(*there) / cluster_.devices_per_node);
    else if (cores > kManyCores)
      text += ", and many nodes have fewer";
    if (needed > std::max(workers, 1))
      text += fmt::format("; the script has {}", number(workers, "worker"));
    return text + ".";
  }

  std::string answered_sentence() const {
    int64_t all = 0;
    for (const auto& [name, times] : script_.alone().answered) all += times;
    if (all == 0) return "";
    return fmt::format(" Values that depend on data were made up: {} in a step.", all);
  }

  // The rate on the largest number that is predicted, if that of one GPU were known.
  std::string next(const Forecast& f) const {
    const auto last = std::find_if(f.rows.rbegin(), f.rows.rend(),
                                   [](const ForecastRow& row) { return row.refused.empty(); });
    if (last == f.rows.rend() || last->devices == 1)
      return fmt::format("Run the same command on one {} next.", cluster_.device);
    const double linear = last->devices * f.rows.front().per_s.value;
    return fmt::format(
        "One {} for five minutes would narrow the interval on {} to about {} to {} {}: run the "
        "same command there.",
        cluster_.device, number(last->devices, f.noun), format_count(linear * last->efficiency.low),
        format_count(linear * last->efficiency.high), f.of_batches ? "GPU batches/s" : "samples/s");
  }

  nlohmann::ordered_json figures() const {
    const CountedStep& step = script_.alone();
    const OpTimes& t = alone();
    nlohmann::ordered_json json = {
        {"way", step.way},
        {"world", script_.largest().world},
        {"parallel", script_.largest().parallel},
        {"samples", step.samples},
        {"operations", step.operations()},
        {"flop", step.flop()},
        {"gradient_bytes", exchanged()},
        {"collectives", exchanges()},
        {"step_s", {{"value", t.step.value}, {"low", t.step.low}, {"high", t.step.high}}},
        {"gpu_s", t.gpu},
        {"host_s", t.host},
        {"unknown_fraction", t.unknown},
        {"reserved_bytes", reserved()},
        {"answered", step.answered}};
    if (const double cores = loader_cores(); cores > 0) json["loader_cores_per_gpu"] = cores;
    return json;
  }

  const CountedScript& script_;
  const Cluster& cluster_;
  const ForecastOptions& options_;
  bool strong_;
  std::map<int, OpTimes> times_;
};

}  // namespace

bool is_strong(const CountedScript& script) {
  const double alone = script.alone().samples, of_rank = script.largest().samples;
  if (alone == 0 || of_rank == 0) return false;
  return std::max(alone, of_rank) > kSameSamples * std::min(alone, of_rank);
}

StepLog log_of(const CountedStep& step, const OpTimes& times, double scale) {
  LoggedStep logged{times.step.value * scale,
                    step.world > 1 ? called_in(step, times) : ddp_buckets(step, times)};
  for (LoggedCollective& one : logged.collectives) {
    one.at *= scale;
    if (one.waited) *one.waited *= scale;
  }
  return {step.world, {std::move(logged)}};
}

double reserved_on(const CountedScript& script, int devices) {
  const CountedStep &alone = script.alone(), &largest = script.largest();
  if (!script.has_group())
    return alone.memory.reserved + (devices > 1 ? alone.gradient_bytes() : 0);
  if (const auto found = script.counts.find(devices); found != script.counts.end())
    return found->second.memory.reserved;
  return at_share(script.counts.begin()->first, alone.memory.reserved,
                  script.counts.rbegin()->first, largest.memory.reserved, devices);
}

Forecast forecast(const CountedScript& script, const Cluster& cluster,
                  const ForecastOptions& options) {
  return Counted(script, cluster, options).forecast();
}

}  // namespace howmany::reports
