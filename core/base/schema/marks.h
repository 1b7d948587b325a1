// SPDX-License-Identifier: Apache-2.0
// The values of `flags` in summary.json, which benches set on a measurement and reports read.
#pragma once

namespace howmany::mark {

// In order of their names.
inline constexpr const char* kBaselines =
    "rates of one device in several jobs: ";  // and their spread
inline constexpr const char* kByBackward =
    "a step is a backward pass: no torch.optim step was seen";
inline constexpr const char* kEndedByItself = "the script ended before the time for its steps";
inline constexpr const char* kFailsOnNodes = "fails on several nodes: ";      // and its reason
inline constexpr const char* kFailsWithRanks = "fails with several ranks: ";  // and its reason
inline constexpr const char* kFallback = "without cuDNN: ";                   // and the operations
inline constexpr const char* kHasGroup =
    "can use DistributedDataParallel, and forms no group as it is started";
inline constexpr const char* kNoDataWait = "data wait not visible";
inline constexpr const char* kNoExchange = "no gradients were exchanged in the timed steps";
inline constexpr const char* kNotSettled = "the samples of a step still changed";
inline constexpr const char* kNoWholeCycle =
    "a long step did not recur: the time of a whole cycle is unknown";
inline constexpr const char* kOptimizerInBackward = "optimizer within backward";
inline constexpr const char* kOutOfTime = "out of time; seconds for every round: ";
inline constexpr const char* kOversubscribed = "oversubscribed";
inline constexpr const char* kOwnRanks = "starts its own ranks, of a number that is its own";
inline constexpr const char* kOwnRate = "rate from the program's own output";
inline constexpr const char* kRehearsal = "rehearsal";
inline constexpr const char* kShortOfCores = "short of cores";
inline constexpr const char* kTryDdp = "DistributedDataParallel added by --try-ddp";
inline constexpr const char* kUsesOneDevice = "uses one device";

}  // namespace howmany::mark
