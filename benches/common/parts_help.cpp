// SPDX-License-Identifier: Apache-2.0
#include "benches/common/parts_help.h"

#include <fmt/format.h>

#include <string_view>

#include "core/nn/model.h"
#include "parallel/comm/comm_list.h"
#include "parallel/modes/mode.h"

namespace howmany::benches {
namespace {

std::string line(std::string_view name, std::string_view what, std::string_view options = "") {
  return fmt::format("  {:14}{}{}{}\n", name, what, options.empty() ? "" : "; ", options);
}

}  // namespace

std::string parts_help() {
  std::string text = "Models:\n";
#define X(name, what) text += line(#name, what);
  HM_MODELS(X)
#undef X
  text += "Modes:\n";
#define X(name, what, traits, options) text += line(#name, what, options);
  HM_MODES(X)
#undef X
  text += "Backends:\n";
#define X(name, what, ...) text += line(#name, what);
  HM_COMMS(X)
#undef X
  return text + "An option follows the name: resnet18:image=64,width=16\n";
}

}  // namespace howmany::benches
