// SPDX-License-Identifier: Apache-2.0
// The temporary files that a bench program writes or reads in the results folder. The destructor
// deletes them. Only one object per folder at a time.
#pragma once

#include <unistd.h>

#include <string>

namespace howmany::reports {

struct BenchScratch {
  explicit BenchScratch(const std::string& folder)
      : bench(folder + "/.run.json"),
        samples(folder + "/.run.samples.jsonl"),
        costs(folder + "/.run.costs.json") {
    clear();
  }
  ~BenchScratch() { clear(); }
  BenchScratch(const BenchScratch&) = delete;
  BenchScratch& operator=(const BenchScratch&) = delete;
  void clear() const {
    ::unlink(bench.c_str());
    ::unlink((bench + ".tmp").c_str());  // left by a bench that was stopped or found the disk full
    ::unlink(samples.c_str());
    ::unlink(costs.c_str());
  }
  std::string bench, samples;
  std::string costs;  // that the bench reads
};

}  // namespace howmany::reports
