// SPDX-License-Identifier: Apache-2.0
// Compares the machines of two files by their contexts. Values only; safe from any thread.
//
// - decisive: CPU, cores, memory, caches, GPU, debug or release; must agree
// - reported: host, kernel, compiler, versions
// - ignored: date, load, clock
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace howmany::reports {

struct Likeness {
  enum class Level { kSame, kComparable, kNot };
  Level level = Level::kSame;
  // "cpu: Xeon in the base, EPYC in the candidate", "L1-L3 caches differ"
  std::vector<std::string> decisive, others;
  bool other_build = false;          // all decisive facts are about the build, not the machine
  std::vector<std::string> unknown;  // decisive facts that one side lacks
};

Likeness likeness(const nlohmann::json& base, const nlohmann::json& candidate);

// Returns the reason for exit code 4: "other machine: L1-L3 caches differ". Safe for a terminal.
std::string refusal(const Likeness& likeness);

}  // namespace howmany::reports
