// The two files that a bench program writes for howmany, in the folder of the results; gone with
// this object, whatever ended the program. One at a time in a folder.
#pragma once

#include <unistd.h>

#include <string>

namespace howmany::reports {

struct BenchScratch {
  explicit BenchScratch(const std::string& folder)
      : bench(folder + "/.run.json"), samples(folder + "/.run.samples.jsonl") {
    clear();
  }
  ~BenchScratch() { clear(); }
  BenchScratch(const BenchScratch&) = delete;
  BenchScratch& operator=(const BenchScratch&) = delete;
  void clear() const {
    ::unlink(bench.c_str());
    ::unlink((bench + ".tmp").c_str());  // of a bench that was stopped, or found the disk full
    ::unlink(samples.c_str());
  }
  std::string bench, samples;
};

}  // namespace howmany::reports
