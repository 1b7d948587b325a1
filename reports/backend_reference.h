// Figures that others measured and published, with where and when, applied only to hardware they
// speak of. Values only; not tied to any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace howmany {

struct Reference {
  std::string system;  // as people say it: "8x H100 SXM, NVLS"
  std::string gpu;     // part of the name the driver tells: "H100"
  int gpus = 1;
  std::string op;            // "all_reduce", "host_to_device", ...
  double bytes = 0;          // of a copy: at least
  double bytes_per_s = 0;    // bus bandwidth of a collective
  std::string source, read;  // where, and the day we read it
};

const std::vector<Reference>& references();

struct ReferenceVerdict {
  const Reference* reference = nullptr;
  double ratio = 0;   // measured / reference
  std::string words;  // "normal", "low", "high"
};
// The nearest size of the same operation, GPU and number of GPUs, at most a factor 2 away; of a
// copy any that is large enough for bandwidth alone. Nothing when the table does not speak of this
// hardware: an "H200" is no "GH200". Within 10 % (the tolerance nccl-tests uses) is normal.
std::optional<ReferenceVerdict> judge(const std::string& gpu, int gpus, const std::string& op,
                                      double bytes, double bytes_per_s);

}  // namespace howmany
