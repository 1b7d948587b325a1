// Whether two files speak of the same machine, from their contexts. Facts that make times another
// matter (CPU, cores, memory, caches, GPU, debug or release) must agree; what changes from minute
// to minute (date, load, clock) is not looked at; the rest (host, kernel, compiler, versions) is
// said. Values only; safe from any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace howmany::reports {

struct Likeness {
  enum class Level { kSame, kComparable, kNot };
  Level level = Level::kSame;
  // "cpu: Xeon there, EPYC here"; the first of a pair is the base.
  std::vector<std::string> decisive, others;
  std::vector<std::string> unknown;  // decisive facts that only one side tells
};

Likeness likeness(const nlohmann::json& base, const nlohmann::json& candidate);

}  // namespace howmany::reports
