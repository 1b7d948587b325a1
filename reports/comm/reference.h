// SPDX-License-Identifier: Apache-2.0
// Published figures of other people, with source and date. Applied only to the same hardware.
// Values only; not tied to any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace howmany::reports {

struct Reference {
  std::string system;  // common name: "8x H100 SXM, NVLS"
  // The driver's name of the GPU without its maker. For copies between GPUs, the whole name must
  // match: "H200" has NVLink, "H200 NVL" has not. For copies with the host, a word of the name
  // matches if all variants have the same link.
  std::vector<std::string> names;
  int gpus = 1;              // in one host
  std::string op;            // "all_reduce", "host_to_device", ...
  double bytes = 0;          // for a copy: the minimum
  double bytes_per_s = 0;    // bus bandwidth of a collective
  std::string source, read;  // source, and the date we read it
};

const std::vector<Reference>& references();

struct ReferenceVerdict {
  const Reference* reference = nullptr;  // the smaller of the two sizes around the measured one
  double bytes_per_s = 0;                // expected rate at the measured size
  std::string source;                    // text: the sizes, source and date
  double ratio = 0;                      // measured / expected
  std::string words;                     // "normal", "low", "high"
};
// Compares with the same operation on the same hardware, all GPUs in one host. Within 10 % is
// normal (nccl-tests' tolerance). Returns nullopt if no figure applies.
//
// Copies. Judged at every size that is large enough for bandwidth alone.
// Collectives. Judged at the sizes of the table, and between two neighbours if both interpolations
//   agree within the tolerance.
std::optional<ReferenceVerdict> judge(const std::string& gpu, int gpus, const std::string& op,
                                      double bytes, double bytes_per_s);

}  // namespace howmany::reports
