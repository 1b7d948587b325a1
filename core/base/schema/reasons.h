// SPDX-License-Identifier: Apache-2.0
// The codes of answer.<question>.reason in summary.json. They are stable; sentences may change.
// reports/README.md explains them.
#pragma once

namespace howmany::reason {

// gpus
inline constexpr const char* kPays = "pays";
inline constexpr const char* kDoesNotPay = "does_not_pay";
inline constexpr const char* kNotFaster = "not_faster";
inline constexpr const char* kUncertainToPay = "uncertain_to_pay";
inline constexpr const char* kUncertainToBeFaster = "uncertain_to_be_faster";
inline constexpr const char* kOneDeviceMeasured = "one_device_measured";
inline constexpr const char* kUsesOneDevice = "uses_one_device";
inline constexpr const char* kNoBaseline = "no_baseline";
inline constexpr const char* kDependsOnModel = "depends_on_model";

// workers
inline constexpr const char* kFeedsDemand = "feeds_demand";
inline constexpr const char* kDemandNotMet = "demand_not_met";
inline constexpr const char* kMoreDoNotLoadMore = "more_do_not_load_more";
inline constexpr const char* kMoreNotMeasured = "more_not_measured";

// backend
inline constexpr const char* kFastest = "fastest";
inline constexpr const char* kNoDifference = "no_difference";
inline constexpr const char* kOneMeasured = "one_measured";
inline constexpr const char* kNoCommonSize = "no_common_size";
inline constexpr const char* kMessagesTooSmall = "messages_too_small";

// transfer
inline constexpr const char* kMoreThreadsFaster = "more_threads_faster";
inline constexpr const char* kMoreThreadsNotFaster = "more_threads_not_faster";
inline constexpr const char* kPinnedFaster = "pinned_faster";
inline constexpr const char* kPinnedNotFaster = "pinned_not_faster";
inline constexpr const char* kNotComparable = "not_comparable";

// workers, backend, transfer
inline constexpr const char* kNothingMeasured = "nothing_measured";

}  // namespace howmany::reason
