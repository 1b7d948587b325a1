// SPDX-License-Identifier: Apache-2.0
// Values of options that are lists.
#pragma once

#include <string>
#include <vector>

namespace howmany {

// Throws CLI::ValidationError with the name of the option if a value is empty.
std::vector<std::string> split_list(const std::string& option,
                                    const std::vector<std::string>& given);

// Expands "cpu:0-3" to cpu:0,cpu:1,cpu:2,cpu:3. Items in other forms are returned unchanged, so
// that the bench can report the error.
std::vector<std::string> expanded_devices(const std::vector<std::string>& devices);

}  // namespace howmany
