// SPDX-License-Identifier: Apache-2.0
// Formats numbers for people: three significant digits and a unit. Prefixes are SI, 1 k = 1000. The
// output is short for any value, also from untrusted files: values beyond any measurement have an
// exponent, and values that are not finite are "-".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace howmany {

constexpr double kMostCount = 1e15;

std::string format_seconds(
    double seconds);                     // "1.23 ms", "45.6 s", "12 min 5 s", "3 h 20 min", "4.2 d"
std::string format_hours(double hours);  // "0.0044", "1.25", "1380"
std::string format_count(double count);  // "950", "12.3 k", "1.28 M"
std::string format_gigabytes(double bytes);                // "40.0 GB", "12.3 MB", as GPUs are sold
std::string format_ratio(double ratio, int decimals = 2);  // "1.82"
std::string format_percent(double share, int decimals = 0);  // "12 %" of 0.12
// Accepts "1281167", "1.28M", "300k", "2e9", up to 1e15. Throws InputError with the name of the
// option for anything else.
double parse_count(const std::string& option, const std::string& text);

std::string without_full_stop(std::string text);  // to continue a sentence

std::string number(int64_t n, std::string_view noun);  // "1 worker", "2 workers"

// Returns the current UTC time in strftime() format.
std::string utc_now(const char* format);

}  // namespace howmany
