// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/history_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "core/base/text/json.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

using PlainJson = nlohmann::json;

struct HistoryLine {
  std::string benchmark, metric;
  HistoryPoint point;
};

// Reads a line of the usual keys without building a tree, because a history has millions of lines.
// Stops at anything else, which line_from_tree() reads or refuses.
class UsualLine final : public nlohmann::json_sax<PlainJson> {
 public:
  static std::optional<HistoryLine> read(const std::string& text) {
    UsualLine line;
    line.line_.point.ratio = 0;
    if (!PlainJson::sax_parse(text, &line)) return std::nullopt;
    const bool complete = (line.seen_ & kRequired) == kRequired && line.line_.point.ratio > 0 &&
                          std::isfinite(line.line_.point.ratio);
    return complete ? std::optional(std::move(line.line_)) : std::nullopt;
  }

  bool key(string_t& name) override {
    static constexpr std::array<std::string_view, 7> kKeys = {
        "commit", "date", "benchmark", "metric", "ratio", "low", "high"};
    const auto known = std::ranges::find(kKeys, std::string_view(name));
    if (known == kKeys.end()) return false;
    key_ = static_cast<unsigned>(known - kKeys.begin());
    const unsigned bit = 1U << key_;
    const bool is_new = (seen_ & bit) == 0;
    seen_ |= bit;
    return is_new;
  }
  bool string(string_t& value) override {
    const std::array<std::string*, 4> places = {&line_.point.commit, &line_.point.date,
                                                &line_.benchmark, &line_.metric};
    if (key_ >= places.size()) return false;
    *places[key_] = std::move(value);
    return true;
  }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool start_object(std::size_t) override { return ++objects_ == 1; }
  bool end_object() override { return true; }
  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool binary(binary_t&) override { return false; }
  bool start_array(std::size_t) override { return false; }
  bool end_array() override { return false; }
  bool parse_error(std::size_t, const std::string&, const PlainJson::exception&) override {
    return false;
  }

 private:
  static constexpr unsigned kRatio = 4, kNone = 99, kRequired = 0b11111;

  bool number(double value) {
    if (key_ == kRatio) line_.point.ratio = value;
    return key_ >= kRatio && key_ != kNone;
  }

  HistoryLine line_;
  unsigned key_ = kNone, seen_ = 0;
  int objects_ = 0;
};

HistoryLine line_from_tree(const std::string& text, const std::string& place) {
  const PlainJson json = parse_json(text, place);
  const JsonNode node(json, place);
  const JsonNode ratio = node.at("ratio");
  HistoryLine line{node.at("benchmark").string(),
                   node.at("metric").string(),
                   {node.at("commit").string(), node.at("date").string(), ratio.number()}};
  if (line.point.ratio <= 0) ratio.fail("is not above 0");
  return line;
}

void sort_by_date(std::vector<HistoryPoint>& points) {
  const auto before = [](const HistoryPoint& a, const HistoryPoint& b) { return a.date < b.date; };
  if (std::is_sorted(points.begin(), points.end(), before)) return;
  std::stable_sort(points.begin(), points.end(), before);
}

}  // namespace

void HistoryReader::add_line(std::string_view view, const std::string& source, size_t number) {
  const std::string text(view);
  std::optional<HistoryLine> line = UsualLine::read(text);
  if (!line) line = line_from_tree(text, fmt::format("{}:{}", source, number));
  std::string key = line->benchmark;
  key.append(1, '\0').append(line->metric);
  const auto [place, is_new] = places_.try_emplace(std::move(key), all_.size());
  if (is_new) all_.push_back({std::move(line->benchmark), std::move(line->metric), {}});
  all_[place->second].points.push_back(std::move(line->point));
}

void HistoryReader::add(const std::string& text, const std::string& source) {
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    ++number;
    at = end + 1;
    if (line.find_first_not_of(" \t\r") != line.npos) add_line(line, source, number);
  }
}

std::vector<Series> HistoryReader::take() {
  std::ranges::sort(all_, [](const Series& a, const Series& b) {
    return std::tie(a.benchmark, a.metric) < std::tie(b.benchmark, b.metric);
  });
  for (Series& series : all_) sort_by_date(series.points);
  places_.clear();
  return std::exchange(all_, {});
}

std::vector<Series> history_from_text(const std::string& text, const std::string& source) {
  HistoryReader reader;
  reader.add(text, source);
  return reader.take();
}

}  // namespace howmany::reports
