// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/chakra.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/protobuf.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"

namespace howmany::reports {
namespace {

using Message = ProtobufMessage;

// Field numbers and values of et_def.proto.
namespace node_field {
constexpr uint32_t kId = 1, kName = 2, kType = 3, kDataDeps = 5, kDuration = 7, kAttribute = 10;
constexpr uint64_t kWork = 4, kCollective = 7;
}  // namespace node_field
namespace attribute_field {
constexpr uint32_t kName = 1, kInt64 = 9, kBool = 27;
}
constexpr uint32_t kVersionField = 1;
constexpr const char* kVersion = "1.0.0";

// CollectiveCommType of et_def.proto.
uint64_t comm_type(Collective kind) {
  constexpr std::pair<Collective, uint64_t> kTypes[] = {{Collective::kAllReduce, 0},
                                                        {Collective::kAllGather, 2},
                                                        {Collective::kBroadcast, 5},
                                                        {Collective::kReduceScatter, 7}};
  return std::ranges::find(kTypes, kind, &std::pair<Collective, uint64_t>::first)->second;
}

const char* name_of(Collective kind) {
  return std::ranges::find(kCollectives, kind, &std::pair<const char*, Collective>::second)->first;
}

uint64_t micros(double seconds) { return static_cast<uint64_t>(std::llround(seconds * 1e6)); }

Message attribute(const char* name, uint32_t field, uint64_t value) {
  return Message().text(attribute_field::kName, name).number(field, value);
}

class ChakraWriter {
 public:
  ChakraWriter() { trace_ = Message().text(kVersionField, kVersion).with_length(); }

  // The program works until `now`, a time of the log. The node follows the collectives of the waits
  // before it.
  void work_until(double now) {
    if (now <= at_ && after_.size() < 2) return;
    const uint64_t duration = micros(std::max(0.0, now - at_));
    at_ = std::max(at_, now);
    last_work_ = add("work", node_field::kWork, after_, duration, {});
    after_ = {last_work_};
  }

  // Returns the node.
  uint64_t call(const LoggedCollective& one) {
    std::set<uint64_t> after = after_;
    if (last_call_ > 0) after.insert(last_call_);
    const double ranks = one.kind == Collective::kAllGather ? one.ranks : 1;
    end_ = std::max(one.at, end_) + one.seconds;
    last_call_ = add(name_of(one.kind), node_field::kCollective, after, micros(one.seconds),
                     {attribute("comm_type", attribute_field::kInt64, comm_type(one.kind)),
                      attribute("comm_size", attribute_field::kInt64,
                                static_cast<uint64_t>(std::llround(one.bytes / ranks)))});
    return last_call_;
  }

  // The program waits from the present on until the collective has ended.
  void wait_for(uint64_t collective, double end) {
    after_.insert(collective);
    at_ = std::max(at_, end);
  }

  double end_of_calls() const { return end_; }
  const std::string& trace() const { return trace_; }

 private:
  uint64_t add(const char* name, uint64_t type, const std::set<uint64_t>& after, uint64_t duration,
               const std::vector<Message>& attributes) {
    ++count_;
    Message node;
    node.number(node_field::kId, count_)
        .text(node_field::kName, fmt::format("{}_{}", name, count_))
        .number(node_field::kType, type);
    for (const uint64_t dependency : after) node.number(node_field::kDataDeps, dependency);
    node.number(node_field::kDuration, duration)
        .message(node_field::kAttribute, attribute("is_cpu_op", attribute_field::kBool, 0));
    for (const Message& one : attributes) node.message(node_field::kAttribute, one);
    trace_ += node.with_length();
    return count_;
  }

  std::string trace_;
  uint64_t count_ = 0, last_work_ = 0, last_call_ = 0;
  std::set<uint64_t> after_;  // nodes that the next work follows
  double at_ = 0, end_ = 0;   // of the log: the program, the collectives
};

struct Wait {
  uint64_t collective = 0;
  double end = 0;
};

// Waits of the program, by the time when they began.
class Waits {
 public:
  explicit Waits(ChakraWriter& writer) : writer_(writer) {}
  void add(double began, Wait wait) { waits_.emplace(began, wait); }
  // Ends those that began before `now`.
  void end_until(double now) {
    for (; !waits_.empty() && waits_.begin()->first <= now; waits_.erase(waits_.begin())) {
      writer_.work_until(waits_.begin()->first);
      writer_.wait_for(waits_.begin()->second.collective, waits_.begin()->second.end);
    }
  }

 private:
  ChakraWriter& writer_;
  std::multimap<double, Wait> waits_;
};

}  // namespace

std::string chakra_trace(const LoggedStep& step) {
  ChakraWriter writer;
  Waits waits(writer);
  const LoggedCollective* in_pass = nullptr;  // the last bucket of a backward pass that goes on
  uint64_t last = 0;
  const auto end_pass = [&] {
    if (in_pass != nullptr) waits.add(in_pass->at, {last, writer.end_of_calls()});
    in_pass = nullptr;
  };
  for (const LoggedCollective& one : step.collectives) {
    if (in_pass != nullptr && one.backward != in_pass->backward) end_pass();
    waits.end_until(one.at);
    writer.work_until(one.at);
    last = writer.call(one);
    if (one.waited)
      waits.add(*one.waited, {last, writer.end_of_calls()});
    else if (one.backward >= 0)
      in_pass = &one;
  }
  end_pass();
  waits.end_until(INFINITY);
  writer.work_until(step.seconds);
  return writer.trace();
}

void write_chakra(const StepLog& log, const std::string& prefix) {
  if (log.steps.empty()) throw InputError("the rehearsal logged no step");
  std::vector<const LoggedStep*> steps;
  for (const LoggedStep& step : log.steps) steps.push_back(&step);
  std::ranges::sort(steps, {}, &LoggedStep::seconds);
  for (const LoggedCollective& one : steps[steps.size() / 2]->collectives)
    if (one.ranks != log.world)
      throw InputError(
          "the step has collectives of groups, and only those of all devices are exported");
  const std::string trace = chakra_trace(*steps[steps.size() / 2]);
  for (int rank = 0; rank < log.world; ++rank)
    write_text(fmt::format("{}.{}.et", prefix, rank), trace);
}

}  // namespace howmany::reports
