// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/version.h"

#include <build_info.h>
#include <commit.h>
#include <fmt/format.h>

namespace howmany::reports {

std::string version_text() {
  std::string text = fmt::format("howmany {} (commit {})\n", HM_VERSION, HM_COMMIT);
  const std::pair<const char*, const char*> facts[] = {
      {"compiler", HM_COMPILER}, {"build type", HM_BUILD_TYPE}, {"oneDNN", HM_ONEDNN_VERSION},
      {"gloo", HM_GLOO_VERSION}, {"MPI", HM_MPI_VERSION},       {"NCCL", HM_NCCL_VERSION},
      {"CUDA", HM_CUDA_VERSION}, {"cuDNN", HM_CUDNN_VERSION},   {"CUPTI", HM_CUPTI_VERSION}};
  for (const auto& [name, value] : facts) text += fmt::format("{:<11} {}\n", name, value);
  text.pop_back();  // CLI11 adds the last newline
  return text;
}

}  // namespace howmany::reports
