// Numbers for people: three digits that matter and a unit. SI prefixes, 1 k = 1000. Short whatever
// the number, which may be from a file of others: with an exponent where it is beyond what can be
// measured, "-" where it is not finite.
#pragma once

#include <string>

namespace howmany {

constexpr double kMostCount = 1e15;

std::string format_seconds(
    double seconds);                     // "1.23 ms", "45.6 s", "12 min 5 s", "3 h 20 min", "4.2 d"
std::string format_hours(double hours);  // "0.0044", "1.25", "1380"
std::string format_count(double count);  // "950", "12.3 k", "1.28 M"
std::string format_ratio(double ratio, int decimals = 2);    // "1.82"
std::string format_percent(double share, int decimals = 0);  // "12 %" of 0.12
// Up to 1e15: "1281167", "1.28M", "300k", "2e9". Throws InputError, which names the option, for
// anything else.
double parse_count(const std::string& option, const std::string& text);

std::string without_full_stop(std::string text);  // for a sentence that goes on

// This moment in UTC, as strftime() writes it.
std::string utc_now(const char* format);

}  // namespace howmany
