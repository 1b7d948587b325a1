// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/recommend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/schema/reasons.h"
#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "reports/comm/run.h"

namespace howmany::reports {
namespace {

constexpr double kBucket = 25 << 20;  // bytes; ddp's default bucket size
// Gradients come in larger messages. A backend that wins below is not the one to train with.
constexpr double kMinAnswerBytes = 64 << 10;

struct Candidate {
  std::string backend;
  CurvePoint time;
};

struct Evidence {
  std::string what;                   // "all_reduce of 16 MiB over 2 ranks takes"
  std::vector<Candidate> candidates;  // the fastest first
  bool others_tried = false;          // a backend without a time
  std::string missing = "";           // why the buckets of the model do not decide
};

// A PyTorch job can use only torch's backends. If two or more were measured, the others are
// dropped.
template <typename T>
void keep_torch(std::vector<T>& all) {
  const auto is_torch = [](const T& one) { return is_torch_backend(one.backend); };
  if (std::ranges::count_if(all, is_torch) > 1) std::erase_if(all, std::not_fn(is_torch));
}

// Returns the sweep of all_reduce over the most ranks, else another sweep, else nullptr.
const OperationResults* main_sweep(const BackendAdvice& advice) {
  const OperationResults* chosen = nullptr;
  for (const OperationResults& c : advice.operations) {
    if (c.sweep.empty()) continue;
    const bool first = !chosen || (c.op == "all_reduce" && chosen->op != c.op);
    if (first || (c.op == "all_reduce" && c.devices > chosen->devices)) chosen = &c;
  }
  return chosen;
}

// Returns the size nearest to a bucket, by ratio, that every backend was measured at, or 0.
double common_size(const std::vector<NamedCurve>& curves) {
  const auto distance = [](double bytes) { return std::abs(std::log(bytes / kBucket)); };
  double best = 0;
  for (const CurvePoint& p : curves.empty() ? Curve() : curves[0].curve) {
    const bool everywhere = std::ranges::all_of(
        curves, [&](const NamedCurve& named) { return at_size(named.curve, p.bytes) != nullptr; });
    if (everywhere && (best == 0 || distance(p.bytes) < distance(best))) best = p.bytes;
  }
  return best;
}

std::string buckets_of(const ModelTime& model) {
  if (model.bytes.size() == 1) return "gradient bucket of " + model.model;
  return fmt::format("{} gradient buckets of {}", model.bytes.size(), model.model);
}

// Returns "mpi was not measured at 1 of the 3 gradient buckets of mlp".
std::string missing_words(const ModelTime& model) {
  std::vector<std::string> words;
  for (const auto& [backend, count] : model.missing) {
    const char* how =
        model.failed.contains(backend) ? "failed or was not measured" : "was not measured";
    words.push_back(fmt::format("{} {} at {} of the {}", backend, how, count, buckets_of(model)));
  }
  return fmt::format("{}", fmt::join(words, " and "));
}

void refuse(BackendAdvice& advice, const char* reason, const std::string& why) {
  advice.certain = false;
  advice.reason = reason;
  advice.because = fmt::format("No answer: {}.", why);
}

std::string faster(const Candidate& first, const Candidate& next) {
  return fmt::format("{} less than {} ({})", format_times(next.time.seconds / first.time.seconds),
                     next.backend, format_seconds(next.time.seconds));
}

std::string not_separated(const Candidate& first, const Candidate& near) {
  if (!first.time.interval || !near.time.interval)
    return faster(first, near) + ", but of too few calls or rounds to be certain";
  if (first.time.one_round || near.time.one_round)
    return faster(first, near) + ", but another run may differ (one round)";
  return fmt::format("and {} {}, which the runs cannot separate", near.backend,
                     format_seconds(near.time.seconds));
}

// Sets certain and reason. Returns the sentence without its end.
std::string decide(const Evidence& evidence, BackendAdvice& advice) {
  const std::vector<Candidate>& all = evidence.candidates;
  const Candidate& first = all.front();
  const std::string time = fmt::format("{} {}", evidence.what, format_seconds(first.time.seconds));
  if (all.size() == 1) {
    advice.certain = !evidence.others_tried;
    advice.reason = reason::kOneMeasured;
    return advice.certain ? fmt::format("Only {} was measured: {}", first.backend, time)
                          : fmt::format("Use {}: {} there, and no other has a time to compare",
                                        first.backend, time);
  }
  const auto near = std::find_if(all.begin() + 1, all.end(),
                                 [&](const Candidate& c) { return !apart(first.time, c.time); });
  advice.certain = near == all.end();
  advice.reason = advice.certain ? reason::kFastest : reason::kNoDifference;
  return fmt::format("Use {}: {} there, {}", first.backend, time,
                     advice.certain ? faster(first, all[1]) : not_separated(first, *near));
}

// Names torch's only row, unless the sentence already does.
std::string torch_words(const std::vector<Candidate>& all, const std::string& sentence) {
  for (const Candidate& c : all)
    if (is_torch_backend(c.backend) && sentence.find(c.backend) == sentence.npos)
      return fmt::format("; {}, which PyTorch uses, takes {}", c.backend,
                         format_seconds(c.time.seconds));
  return "";
}

void recommend(Evidence evidence, BackendAdvice& advice) {
  keep_torch(evidence.candidates);
  std::ranges::sort(evidence.candidates, {}, [](const Candidate& c) { return c.time.seconds; });
  const std::vector<Candidate>& all = evidence.candidates;
  advice.recommended = all.front().backend;
  const std::string sentence = decide(evidence, advice);
  advice.because = sentence + torch_words(all, sentence);
  if (!evidence.missing.empty()) {
    advice.certain = false;
    advice.because += "; but " + evidence.missing;
  }
  advice.because += ".";
  if (all.size() > 1 && std::ranges::all_of(all, is_torch_backend, &Candidate::backend))
    advice.notes.push_back("The recommendation compares torch's backends only.");
}

// `model`: with missing buckets, or nullptr.
void recommend_by_sweep(const ModelTime* model, BackendAdvice& advice) {
  const OperationResults* sweep = main_sweep(advice);
  const std::string missing = model ? missing_words(*model) : "";
  if (!sweep)
    return refuse(advice, reason::kNothingMeasured,
                  missing.empty() ? "no size was measured" : missing);
  std::vector<NamedCurve> curves = sweep->sweep;
  if (model)
    std::erase_if(curves, [&](const NamedCurve& c) { return model->failed.contains(c.backend); });
  keep_torch(curves);
  const double bytes = common_size(curves);
  if (bytes == 0)
    return refuse(advice, reason::kNoCommonSize, "no size was measured over every backend");
  if (bytes < kMinAnswerBytes && curves.size() > 1)
    return refuse(advice, reason::kMessagesTooSmall,
                  fmt::format("{} is the largest message that was measured over every backend, and "
                              "gradients are larger. Use --max-bytes 16M or a larger --time-budget",
                              format_bytes(bytes)));
  Evidence evidence{.what = fmt::format("{} of {} over {} ranks takes", sweep->op,
                                        format_bytes(bytes), sweep->devices),
                    .candidates = {},
                    .others_tried = sweep->tried.size() > 1,
                    .missing = missing};
  for (const NamedCurve& named : curves)
    evidence.candidates.push_back({named.backend, *at_size(named.curve, bytes)});
  recommend(std::move(evidence), advice);
}

}  // namespace

void recommend_backend(BackendAdvice& advice) {
  if (advice.operations.empty())
    return refuse(advice, reason::kNothingMeasured, "nothing was measured");
  const ModelTime* model = advice.models.empty() ? nullptr : &advice.models.front();
  if (!model || !model->missing.empty()) return recommend_by_sweep(model, advice);
  Evidence evidence{.what = fmt::format("the {} {}", buckets_of(*model),
                                        model->bytes.size() == 1 ? "takes" : "take"),
                    .candidates = {}};
  for (const auto& [backend, time] : model->times) evidence.candidates.push_back({backend, time});
  recommend(std::move(evidence), advice);
}

}  // namespace howmany::reports
