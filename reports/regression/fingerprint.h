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
  // "cpu: Xeon there, EPYC here"; "there" is the base
  std::vector<std::string> decisive, others;
  std::vector<std::string> unknown;  // decisive facts that one side lacks
};

Likeness likeness(const nlohmann::json& base, const nlohmann::json& candidate);

}  // namespace howmany::reports
