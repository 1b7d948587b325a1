// How long what runs in threads of one process waits for one of them. A thread that hangs cannot be
// ended alone: whoever waited for it in vain names it on stderr and ends the process. From any
// thread.
#pragma once

#include <chrono>
#include <string_view>

namespace howmany {

std::chrono::milliseconds patience();  // 30 s
void set_patience(std::chrono::milliseconds time);

// "howmany: <why>" on stderr, then exit code 3. What was printed before is kept, destructors do not
// run.
[[noreturn]] void end_process(std::string_view why);
// Says who has not ended, and after what.
[[noreturn]] void give_up_on(std::string_view who, std::string_view why);

}  // namespace howmany
