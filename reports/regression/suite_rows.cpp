// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/suite_rows.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "core/base/text/json.h"
#include "core/base/text/unique_keys.h"
#include "reports/results/bench_file.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

using PlainJson = nlohmann::json;

// Depth 1 is the document, 2 its members, 3 a row.
class Rows final : public nlohmann::json_sax<PlainJson> {
 public:
  Rows(std::string source, const std::function<void(const SuiteRow&)>& take)
      : source_(std::move(source)), take_(take), keys_(source_) {}

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override {
    if (in_row()) set(value);
    return scalar(value);
  }
  bool number_integer(number_integer_t value) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override { return number(value); }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool string(string_t& value) override {
    if (in_row()) {
      set(value);
      return true;
    }
    return scalar(value);
  }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    keys_.start_object();
    if (in_context()) open(PlainJson::object());
    ++depth_;
    if (depth_ == 1) is_object_ = true;
    if (in_row()) row_ = SuiteRow();
    return true;
  }
  bool end_object() override {
    if (in_row()) finish_row();
    keys_.end_object();
    --depth_;
    if (in_context()) close();
    return true;
  }
  bool start_array(std::size_t) override {
    if (in_context()) open(PlainJson::array());
    if (depth_ == 1 && section_ == "benchmarks") found_ = true;
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    if (in_context()) close();
    return true;
  }
  bool key(string_t& name) override {
    keys_.key(name);
    if (depth_ == 1) section_ = name;
    key_ = name;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const PlainJson::exception& error) override {
    std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line ..."
    if (const size_t end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
    throw InputError(fmt::format("[{}] is not JSON: {}", source_, what));
  }

  PlainJson context() {
    if (!is_object_) throw InputError(fmt::format("[{}] expected an object", source_));
    if (!found_) throw InputError(fmt::format("[{}] \"benchmarks\" is missing", source_));
    return context_.is_object() ? std::move(context_) : PlainJson::object();
  }

 private:
  bool in_row() const { return depth_ == 3 && found_ && section_ == "benchmarks"; }
  bool in_context() const { return depth_ >= 1 && section_ == "context"; }

  template <class Value>
  bool number(Value value) {
    if (in_row()) {
      set_number(static_cast<double>(value));
      return true;
    }
    return scalar(value);
  }

  // The context is small, so it is built as a tree.
  template <class Value>
  bool scalar(const Value& value) {
    if (in_context()) put(value);
    return true;
  }
  PlainJson& put(PlainJson value) {
    if (open_.empty()) return context_ = std::move(value);
    PlainJson& parent = *open_.back();
    if (parent.is_object()) return parent[key_] = std::move(value);
    parent.push_back(std::move(value));
    return parent.back();
  }
  void open(PlainJson container) { open_.push_back(&put(std::move(container))); }
  void close() {
    if (!open_.empty()) open_.pop_back();
  }

  void set(bool value) {
    if (key_ == "error_occurred") row_.error = value;
    if (key_ == "skipped") row_.skipped = value;
  }

  void set(const std::string& value) {
    static constexpr std::array<std::pair<std::string_view, std::string SuiteRow::*>, 8> kTexts = {
        {{"name", &SuiteRow::name},
         {"run_name", &SuiteRow::run_name},
         {"run_type", &SuiteRow::run_type},
         {"aggregate_name", &SuiteRow::aggregate_name},
         {"aggregate_unit", &SuiteRow::aggregate_unit},
         {"time_unit", &SuiteRow::time_unit},
         {"error_message", &SuiteRow::error_message},
         {"skip_message", &SuiteRow::skip_message}}};
    for (const auto& [name, member] : kTexts) {
      if (key_ == name) row_.*member = value;
    }
    if (key_ == "run_type") row_.has_run_type = true;
    if (key_ == "skipped") row_.skipped = !value.empty();  // 1.8: the kind of skip, by name
  }

  void set_number(double value) {
    if (!std::isfinite(value)) return;
    if (key_ == "real_time") {
      row_.real_time = value;
    } else if (key_ == "cpu_time") {
      row_.cpu_time = value;
    } else if (key_ == "repetition_index") {
      row_.repetition_index = index(value);
    } else if (key_ == "family_index") {
      row_.family_index = index(value);
    } else if (key_ == "per_family_instance_index") {
      row_.instance_index = index(value);
    } else if (key_ == "iterations") {
      row_.iterations = index(value);
    } else if (!is_google_number(key_) || key_ == "allocs_per_iter" || key_ == "max_bytes_used") {
      row_.counters.emplace_back(key_, value);
    }
  }

  int64_t index(double value) const {
    if (value < 0 || value > 9e15 || value != std::floor(value)) {
      throw InputError(fmt::format("[{}] benchmarks[{}].{}: expected a count, found {}", source_,
                                   rows_, key_, value));
    }
    return static_cast<int64_t>(value);
  }

  void finish_row() {
    if (row_.name.empty() && row_.run_name.empty()) {
      throw InputError(fmt::format("[{}] benchmarks[{}]: \"name\" is missing", source_, rows_));
    }
    take_(row_);
    ++rows_;
  }

  std::string source_;
  const std::function<void(const SuiteRow&)>& take_;
  UniqueKeys keys_;
  int depth_ = 0;
  bool is_object_ = false, found_ = false;
  std::string section_, key_;
  SuiteRow row_;
  int64_t rows_ = 0;
  PlainJson context_;
  std::vector<PlainJson*> open_;
};

}  // namespace

nlohmann::json each_row(std::string text, const std::string& source,
                        const std::function<void(const SuiteRow&)>& take) {
  const std::string plain = plain_json(std::move(text), source);
  Rows rows(source, take);
  PlainJson::sax_parse(plain, &rows);
  return rows.context();
}

}  // namespace howmany::reports
