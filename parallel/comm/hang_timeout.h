// SPDX-License-Identifier: Apache-2.0
// The hang timeout: how long threads of one process wait for one of them after a failure. A thread
// that hangs cannot be ended alone, so the waiting thread reports it on stderr and ends the
// process. Thread-safe.
#pragma once

#include <chrono>
#include <string_view>

namespace howmany {

std::chrono::milliseconds hang_timeout();  // default: 30 s
void set_hang_timeout(std::chrono::milliseconds timeout);

// Writes "howmany: <why>" to stderr and exits with code 3. Flushes stdout; runs no destructors.
[[noreturn]] void end_process(std::string_view why);
// Ends the process with the message "<name> has not ended <hang timeout> s after <event>".
[[noreturn]] void end_hung_process(std::string_view name, std::string_view event);

}  // namespace howmany
