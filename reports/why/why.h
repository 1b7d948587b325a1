// SPDX-License-Identifier: Apache-2.0
// The lost time of a step at each number of devices, and the changes that would help: the member
// `why` of the summary's answer. reports/README.md describes it. Values only; not tied to any
// thread.
//
//   {"because": "2 GPUs with ddp lose 15.9 ms of a step of 41.0 ms (39 %): ...",
//    "recording": 0.0004,
//    "counts": [{"devices", "model", "mode", "backend", "because", "step_s", "ideal_s", "lost_s",
//                "parts": [{"part", "seconds", "error_s", "share", "seconds_on_one"}], "cause",
//                "exchange": {"bytes", "buckets", "last_bucket_bytes"},
//                "slowest": {"rank", "extra_s", "share", "because"}, "threads_s",
//                "refused": null,
//                "help": [{"what", "gain_s", "error_s", "evidence": "replayed"|"measured",
//                          "paste"}]}]}
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "reports/gpus/results.h"

namespace howmany::reports {

// Returns the answer; null if no run has evidence. For a script it comes from the evidence of its
// runs, for howmany's own models from their metrics (model_parts.h).
nlohmann::ordered_json why_json(const Plan& plan, const Results& results, const Summary& summary);

// Returns the text of such an answer for a terminal; empty if it is null. `whole`: all counts and
// helps, else the largest count of each model and its best helps.
std::string why_text(const nlohmann::json& answer, bool whole, bool color);

}  // namespace howmany::reports
