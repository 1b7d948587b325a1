// What a comparison comes to: names, counts, the exit code, one sentence.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "reports/compare/judge.h"

namespace howmany {

const char* name_of(Verdict verdict) {
  constexpr std::array<const char*, 8> kNames = {"SLOWER", "FASTER",  "SAME",    "INCONCLUSIVE",
                                                 "FAILED", "SKIPPED", "MISSING", "NEW"};
  return kNames[static_cast<size_t>(verdict)];
}

int64_t Comparison::count(Verdict verdict) const {
  return std::count_if(rows.begin(), rows.end(),
                       [&](const Row& row) { return row.verdict == verdict; });
}

int exit_code(const Comparison& comparison, bool strict) {
  if (comparison.count(Verdict::kSlower) > 0) return 1;
  if (comparison.count(Verdict::kFailed) > 0) return 3;
  return strict && comparison.count(Verdict::kInconclusive) > 0 ? 5 : 0;
}

std::string headline(const Comparison& c) {
  const auto all = static_cast<int64_t>(c.rows.size());
  const int64_t slower = c.count(Verdict::kSlower), unclear = c.count(Verdict::kInconclusive);
  std::string text;
  if (slower > 0) {
    text = fmt::format("Slower: {} of {} measurements", slower, all);
  } else if (unclear > 0) {
    text = fmt::format("No regression found, but {} of {} measurements are inconclusive", unclear,
                       all);
  } else {
    text = fmt::format("No regression in {} measurements", all);
  }
  for (const Verdict other :
       {Verdict::kFaster, Verdict::kFailed, Verdict::kMissing, Verdict::kNew}) {
    if (const int64_t n = c.count(other)) {
      std::string name = name_of(other);
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char ch) { return static_cast<char>(std::tolower(ch)); });
      text += fmt::format(", {} {}", n, name);
    }
  }
  return text + ".";
}

}  // namespace howmany
