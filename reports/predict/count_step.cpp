// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/count_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/private_folder.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/samples.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/results/bench_file.h"

namespace howmany::reports {
namespace {

// The hook raises it within the script.
constexpr std::string_view kRefused = "howmany_hook.pretend.Refused: ";
constexpr std::string_view kMetaTensor = "meta";  // in PyTorch's errors, if values were needed
constexpr std::string_view kBenchStart = "[script] ";

// The step cannot be followed by the shapes of its tensors.
class NeedsValues : public InputError {
 public:
  using InputError::InputError;
};

std::string json_of(const PretendedGpu& gpu, int world, bool real) {
  const nlohmann::ordered_json json = {{"name", gpu.name},
                                       {"memory", gpu.memory},
                                       {"capability", gpu.capability},
                                       {"devices", std::min(world, gpu.devices)},
                                       {"real", real}};
  return json.dump();
}

// Throws NeedsValues if the hook refused the step or PyTorch missed values, and std::runtime_error
// if the script failed.
void run_counting(const Script& script, const Words& flags, int world,
                  const BenchScratch& scratch) try {
  run_once(script, flags, world, 0, scratch);
} catch (const InputError&) {
  throw;
} catch (const std::runtime_error& error) {
  const std::string_view why = error.what();
  const size_t refused = why.find(kRefused);
  if (refused != std::string_view::npos)
    throw NeedsValues(std::string(why.substr(refused + kRefused.size())));
  const size_t name = why.find(kBenchStart);
  if (name == std::string_view::npos) throw;
  const std::string text(why.substr(name + kBenchStart.size()));
  if (text.find(kMetaTensor) != std::string::npos) throw NeedsValues(text);
  throw std::runtime_error(text);
}

}  // namespace

StepCounter::StepCounter(PretendedGpu gpu, std::function<void(const std::string&)> report)
    : gpu_(std::move(gpu)), report_(std::move(report)) {}

CountedStep StepCounter::count(const Script& script, int world) {
  try {
    return count_once(script, world);
  } catch (const NeedsValues& why) {
    if (real_) throw;
    report_(
        fmt::format("its step needs values, so this CPU computes it: {}", printable(why.what())));
  }
  real_ = true;
  return count_once(script, world);
}

CountedStep StepCounter::count_once(const Script& script, int world) const {
  const PrivateFolder folder;
  const BenchScratch scratch(folder.path());
  run_counting(script, {flag::kCount, json_of(gpu_, world, real_)}, world, scratch);
  const std::vector<SampleLine> lines = read_samples(scratch.samples);
  if (lines.size() != 1) throw InputError("script_bench: expected one counted step");
  const JsonNode line(lines[0].json, "script_bench");
  CountedStep step = counted_from(line.at(sample_line::kCounted).value(), sample_line::kCounted);
  if (!step.refused.empty()) throw InputError(step.refused);
  if (step.samples == 0) step.samples = static_cast<double>(script.samples_per_step);
  return step;
}

}  // namespace howmany::reports
