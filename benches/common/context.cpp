// SPDX-License-Identifier: Apache-2.0
#include "benches/common/context.h"

#include <benchmark/benchmark.h>
#include <build_info.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include "benches/common/build_commit.h"
#include "benches/common/gpus.h"
#include "benches/common/machine.h"
#include "core/base/schema/context.h"
#include "core/base/text/utf8.h"
#include "core/profile/range.h"
#include "core/tensor/device.h"

namespace howmany::benches {
namespace {

// Returns the fact as text, or "unknown" if the system does not report it.
std::string text_of(const nlohmann::json& fact) {
  if (fact.is_null()) return "unknown";
  return fact.is_string() ? fact.get<std::string>() : fact.dump();
}

std::string kernel() {
  utsname names{};
  return uname(&names) == 0 ? fmt::format("{} {} {}", names.sysname, names.release, names.machine)
                            : "unknown";
}

}  // namespace

void add_context(const std::map<std::string, std::string>& more) {
  nlohmann::json cpu = describe_cpu(), memory = describe_memory();
  std::map<std::string, std::string> context = {
      {context::kCommit, build_commit()},
      {context::kCompiler, HM_COMPILER},
      {context::kCompilerFlags, HM_CXX_FLAGS},
      {context::kBuildType, HM_BUILD_TYPE},
      {context::kCpu, text_of(cpu["model"])},
      {context::kCoresAllowed, std::to_string(cpu_limits().usable)},
      {context::kCoresBecause, cpu_limits().because},
      {context::kGovernor, text_of(cpu["governor"])},
      {context::kMemoryBytes, text_of(memory["total_bytes"])},
      {context::kKernel, kernel()},
      {context::kOnednn, HM_ONEDNN_VERSION},
      {context::kGloo, HM_GLOO_VERSION},
      {context::kNvtx, ranges_built_in() ? "built in" : "not built in"}};
  const Gpus gpus = find_gpus();
  if (!gpus.list.empty()) {
    context[context::kGpu] = text_of(gpus.list[0]["name"]);
    context[context::kDriver] = gpus.driver;
  }
  for (const auto& [key, value] : more) context[key] = value;
  for (const auto& [key, value] : context)
    benchmark::AddCustomContext(with_visible_controls(key), with_visible_controls(value));
}

}  // namespace howmany::benches
