// SPDX-License-Identifier: Apache-2.0
// Options that howmany forwards unchanged to the bench, the report and the job script, by flag
// name. To add one, add a line to the list in forwarded.cpp. Values only.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/schema/flags.h"

namespace howmany::reports {

// The devices that must be GPUs if the value is not the default, or CPUs that have it (bf16).
// kFirst covers the runs on fewer devices, because they use the first ones of the list.
enum class NeedsGpu { kNone, kFirst };

struct ForwardedOption {
  const Flag* flag;
  const char* usual;   // the default value
  const char* values;  // allowed values, "f32,tf32,bf16"; empty: any
  NeedsGpu needs_gpu;
  bool of_files;  // requires data files (--data)

  const char* name() const { return flag->bare_name(); }
};
std::span<const ForwardedOption> forwarded_options();

// The forwarded options that were given. A default value counts as not given.
class ForwardedOptions {
 public:
  const std::string& operator[](std::string_view name) const;  // empty: not given
  void set(std::string_view name, const std::string& word);
  const std::map<std::string, std::string>& given() const { return given_; }
  // Throws InputError if a value is unknown (suggests the nearest), if a device is not a GPU but
  // must be, or if an option needs data files and there are none.
  void check(const std::vector<std::string>& devices) const;

 private:
  std::map<std::string, std::string> given_;
};

}  // namespace howmany::reports
