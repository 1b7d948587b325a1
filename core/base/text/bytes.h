// Sizes and rates for people. Message sizes in binary units, as they are chosen; rates in SI.
#pragma once

#include <cstdint>
#include <string>

namespace howmany {

std::string format_bytes(double bytes);       // "4 B", "16 KiB", "1.5 MiB"
std::string format_rate(double bytes_per_s);  // "12.3 GB/s"; "-" when not finite
std::string format_times(double factor);      // "3.1x"
// "16384", "16K", "25M", "1G": 1 K = 1024. Throws InputError, which names the option, for anything
// else.
int64_t parse_bytes(const std::string& option, const std::string& text);

}  // namespace howmany
