// SPDX-License-Identifier: Apache-2.0
// Formats and parses sizes and rates. Sizes have binary units, as users choose message sizes; rates
// have SI units.
#pragma once

#include <cstdint>
#include <string>

namespace howmany {

std::string format_bytes(double bytes);       // "4 B", "16 KiB", "1.5 MiB"
std::string format_rate(double bytes_per_s);  // "12.3 GB/s"; "-" if not finite
std::string format_times(double factor);      // "3.1x"
// Accepts "16384", "16K", "25M", "1G", "24 GB", "24gib"; 1 K = 1 KiB = 1024, 1 KB = 1000. Throws
// InputError with the name of the option for anything else.
int64_t parse_bytes(const std::string& option, const std::string& text);
// As parse_bytes(), but "24" is refused: a number below 1e6 needs a unit.
int64_t parse_memory(const std::string& option, const std::string& text);

}  // namespace howmany
