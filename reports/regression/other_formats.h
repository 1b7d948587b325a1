// SPDX-License-Identifier: Apache-2.0
// Files of benchmarks that are not Google Benchmark's JSON. Untrusted input. Pure and thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace howmany::reports {

// Throws InputError if the text is no JSON for a reason that has a remedy: UTF-16, text of the
// console before it, two documents, CSV or the output of another tool.
void refuse_other_text(const std::string& text, const std::string& source);

// Returns the JSON of pytest-benchmark or hyperfine in Google Benchmark's form, else `json`. Throws
// InputError that names the tool or the expected form if it has no "benchmarks".
nlohmann::json as_google_json(nlohmann::json json, const std::string& source);

}  // namespace howmany::reports
