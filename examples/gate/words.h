// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

// Returns the words of `text`, which are separated by single spaces.
std::vector<std::string> split(const std::string& text);
