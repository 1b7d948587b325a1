// SPDX-License-Identifier: Apache-2.0
// The lost time of a step at each number of devices, and the changes that would help: the member
// `why` of the summary's answer. Values only; not tied to any thread.
//
//   {"because": "Of a step of 41.0 ms on 2 GPUs 15.9 ms are lost: ...",
//    "recording": 0.0004,
//    "counts": [{"devices", "mode", "backend", "step_s", "ideal_s", "lost_s",
//                "parts": [{"part", "seconds", "error_s", "share", "seconds_on_one"}],
//                "exchange": {"bytes", "buckets", "last_bucket_bytes"},
//                "slowest": {"rank", "extra_s", "share", "because"}, "threads_s",
//                "refused": null,
//                "help": [{"what", "gain_s", "error_s", "evidence": "replayed"|"measured",
//                "paste"}]}]}
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "reports/gpus/results.h"

namespace howmany::reports {

// Returns the answer; null if no run has evidence. Own models and scripts alike: of a model the
// parts come from the metrics of its measurements.
nlohmann::ordered_json why_json(const Plan& plan, const Results& results, const Summary& summary);

// Returns the text for a terminal; empty without an answer. `whole`: every count, else the largest.
std::string why_text(const nlohmann::json& answer, bool whole, bool color);

}  // namespace howmany::reports
