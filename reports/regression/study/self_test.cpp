// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/study/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <random>

#include "core/base/process.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "reports/regression/launcher.h"
#include "reports/regression/sides.h"
#include "reports/regression/study/figures.h"
#include "reports/results/machine.h"
#include "reports/results/record.h"
#include "reports/results/run_folder.h"

namespace howmany::reports {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::array kSelfTestExtras = {1, 3, 5, 10};
constexpr int64_t kSlowEvery = 4;  // in blocks: power needs fewer windows than rare alarms

struct Arm {
  std::string name;
  std::unique_ptr<Launcher> program;
};

std::vector<std::string> worker(int extra) {
  return own_command({"gate-worker", "--extra", std::to_string(extra)});
}

class Recorder {
 public:
  Recorder(const GateArguments& arguments, const std::string& path)
      : a_(arguments), random_(arguments.seed), launches_(resume(path)), trace_(path) {
    const bool own = a_.base.empty();
    const std::vector<std::string> command = own ? worker(0) : split_command("--base", a_.base);
    const LaunchOptions options{a_.repetitions, a_.min_seconds, a_.run_timeout, own || a_.plain};
    arms_.push_back({"base", std::make_unique<Launcher>("base", command, options)});
    arms_.push_back({kSameArm, std::make_unique<Launcher>("base", command, options)});
    for (const int extra : kSelfTestExtras) {
      if (!own) break;  // other programs can only be tested unchanged
      arms_.push_back(
          {slow_arm(extra), std::make_unique<Launcher>("base", worker(extra), options)});
    }
    for (Arm& arm : arms_) arm.program->calibrate();
  }

  const std::vector<Launch>& record() {
    const int64_t first = launches_.empty() ? 0 : launches_.back().block + 1;
    random_.discard(static_cast<uint64_t>(first) * 8);
    const auto start = Clock::now();
    for (int64_t block = first; block < a_.blocks && !interrupted(); ++block) {
      const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
      if (elapsed > a_.time_budget) break;
      if (!a_.judge.quiet && block % 500 == 0) {
        fmt::print(stderr, "block {} of {}, {} elapsed\n", block, a_.blocks,
                   format_seconds(std::round(elapsed)));
      }
      record_block(block);
    }
    return launches_;
  }

 private:
  // Reads the launches of an earlier run and removes an incomplete last line.
  static std::vector<Launch> resume(const std::string& path) {
    if (!std::filesystem::exists(path)) return {};
    const std::string text = read_text(path, int64_t{1} << 30);
    std::vector<Launch> launches = trace_from_text(text, path);
    const size_t end = text.rfind('\n');
    if (end + 1 != text.size()) write_text(path, text.substr(0, end + 1));
    return launches;
  }

  // Runs every arm once in random order. Most blocks have only base and its copy.
  void record_block(int64_t block) {
    std::vector<Arm*> order;
    for (size_t i = 0; i < arms_.size(); ++i) {
      if (i < 2 || block % kSlowEvery == 0) order.push_back(&arms_[i]);
    }
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<Launch> whole;
    for (Arm* arm : order) {
      Launch launch = launch_of(arm->program->run());
      if (interrupted()) return;
      launch.block = block;
      launch.arm = arm->name;
      launch.position = static_cast<int64_t>(whole.size());
      launch.wall_seconds = arm->program->last_wall_seconds();
      whole.push_back(std::move(launch));
    }
    for (Launch& launch : whole) {
      trace_.add(launch);
      launches_.push_back(std::move(launch));
    }
  }

  const GateArguments& a_;
  std::mt19937_64 random_;
  std::vector<Launch> launches_;
  TraceFile trace_;
  std::vector<Arm> arms_;
};

nlohmann::json machine_or_null() {
  try {
    return machine_fingerprint();
  } catch (const InputError&) {
    return nullptr;  // no bench program in our folder
  }
}

}  // namespace

const char* const kSameArm = "same";

std::string slow_arm(int percent) { return fmt::format("slow{}", percent); }

int run_self_test(const GateArguments& a) {
  check_outputs(a.judge);
  if (a.out.empty()) throw InputError("--self-test: give --out DIR; the raw trace is kept there");
  const RunFolder held = RunFolder::reopen(a.out);  // continues an earlier one
  prepare_folder(a.out, int64_t{256} << 20);
  const GateRules rules{a.screen, a.pairs, judge_options(a.judge)};
  catch_interrupts();
  Recorder recorder(a, a.out + "/trace.jsonl");
  const std::vector<Launch>& launches = recorder.record();
  nlohmann::ordered_json all = figures(launches, rules);
  all["machine"] = machine_or_null();
  write_text(a.out + "/self_test.json", dump_json(all));
  write_text(a.out + "/noise.json", dump_json(noise(launches, a.pairs)));
  fmt::print("{}", a.judge.json ? dump_json(all) : render_figures(all));
  fmt::print(stderr, "Files: {}\n", a.out);
  return interrupted() ? exit_code::kInterrupted : exit_code::kFine;
}

}  // namespace howmany::reports
