// SPDX-License-Identifier: Apache-2.0
// The command-line flags. One name has one meaning and one help text in all programs. To add a
// flag, add a line to flags.inc; to rename one, keep its old name as a spelling without help text.
#pragma once

#include <string>

namespace howmany {

struct Flag {
  const char* name;   // with its dashes
  const char* value;  // shown in --help, a unit if there is one; empty: a switch
  const char* help;   // without the default

  constexpr const char* bare_name() const { return name + 2; }  // without the dashes
  operator std::string() const { return name; }
};

namespace flag {

#define HM_FLAG(constant, name, value, help) inline constexpr Flag constant{name, value, help};
#include "core/base/schema/flags.inc"  // IWYU pragma: export
#undef HM_FLAG

}  // namespace flag
}  // namespace howmany
