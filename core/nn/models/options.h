// SPDX-License-Identifier: Apache-2.0
// Helpers to read a model's options. Private to core/nn/models.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/nn/model.h"

namespace howmany::models {

// Throws std::invalid_argument if an option is not one of `keys`.
void allow(std::string_view model, const ModelOptions& options,
           const std::vector<std::string_view>& keys);
// Returns a positive integer, or `otherwise` if the key is absent.
int64_t positive(const ModelOptions& options, const std::string& key, int64_t otherwise);
// Returns a number above 0, or `otherwise` if the key is absent.
double number(const ModelOptions& options, const std::string& key, double otherwise);
// Returns a number from 0 to below 1, or `otherwise` if the key is absent.
double share(const ModelOptions& options, const std::string& key, double otherwise);
// Returns true for "yes", false for "no", or `otherwise` if the key is absent.
bool yes_or_no(const ModelOptions& options, const std::string& key, bool otherwise);
// Parses "64-32-10". Requires at least two sizes.
std::vector<int64_t> sizes(const ModelOptions& options, const std::string& key,
                           const std::string& otherwise);

}  // namespace howmany::models
