// Figures that others measured and published, with where and when, applied only to hardware they
// speak of. Values only; not tied to any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace howmany::reports {

struct Reference {
  std::string system;  // as people say it: "8x H100 SXM, NVLS"
  // As the driver names the GPU, without its maker. Between GPUs the whole name: "H200" is the one
  // with NVLink and no "H200 NVL". To and from the host a part of it, where all variants of the GPU
  // have the same link.
  std::vector<std::string> names;
  int gpus = 1;              // of one host
  std::string op;            // "all_reduce", "host_to_device", ...
  double bytes = 0;          // of a copy: at least
  double bytes_per_s = 0;    // bus bandwidth of a collective
  std::string source, read;  // where, and the day we read it
};

const std::vector<Reference>& references();

struct ReferenceVerdict {
  const Reference* reference = nullptr;  // of two sizes around the one measured, the smaller
  double bytes_per_s = 0;                // what is to be expected at the size measured
  std::string source;                    // in words: between which sizes, where from, when read
  double ratio = 0;                      // measured / expected
  std::string words;                     // "normal", "low", "high"
};
// Against the same operation on the same hardware, all GPUs in one host. A copy is judged at any
// size that is large enough for bandwidth alone, a collective at the sizes of the table and between
// two neighbours of them, where these tell what to expect to within the tolerance. Nothing
// elsewhere. Within 10 % (the tolerance nccl-tests uses) is normal.
std::optional<ReferenceVerdict> judge(const std::string& gpu, int gpus, const std::string& op,
                                      double bytes, double bytes_per_s);

}  // namespace howmany::reports
