// SPDX-License-Identifier: Apache-2.0
// The text is valid OpenMetrics and valid in Prometheus' text format, the only one that
// node_exporter's textfile collector reads. Every family is a gauge, no sample has a timestamp, and
// the only comments are HELP, TYPE, UNIT and EOF.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "core/base/text/files.h"
#include "reports/export/exporter.h"

namespace howmany::reports {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

// Escapes a label's value as both formats do.
std::string escaped_label(const std::string& value) {
  std::string safe;
  for (const char c : value) {
    if (c == '\n') {
      safe += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') safe += '\\';
    safe += c;
  }
  return safe;
}

// One metric family with its samples.
class Family {
 public:
  Family(const std::string& name, const std::string& unit, const std::string& help)
      : name_("howmany_" + name + (unit.empty() ? "" : "_" + unit)) {
    head_ = fmt::format("# HELP {0} {1}.\n# TYPE {0} gauge\n", name_, help);
    if (!unit.empty()) head_ += fmt::format("# UNIT {} {}\n", name_, unit);
  }
  // Omits a sample if the labels are there already: readers would refuse the file.
  void add(const Labels& labels, double value) {
    std::vector<std::string> parts;
    for (const auto& [name, text] : labels)
      parts.push_back(fmt::format("{}=\"{}\"", name, escaped_label(text)));
    const std::string series = fmt::format("{}{{{}}}", name_, fmt::join(parts, ","));
    if (seen_.insert(series).second) samples_ += fmt::format("{} {}\n", series, value);
  }
  void add(const Labels& labels, const std::optional<double>& value) {
    if (value) add(labels, *value);
  }
  std::string text() const { return samples_.empty() ? "" : head_ + samples_; }

 private:
  std::string name_, head_, samples_;
  std::set<std::string> seen_;
};

std::string about_answers(const std::vector<Feed>& feeds) {
  Family info("answer", "", "Subject of the measurement, and version of howmany");
  Family time("answer_timestamp", "seconds", "End of the measurement, in Unix time");
  Family recommended("recommended", "devices", "Recommended number of devices");
  Family certain("answer_certain", "", "1 if the answer is certain");
  for (const Feed& feed : feeds) {
    Labels labels = {{"model", feed.model}};
    time.add(labels, feed.unix_seconds);
    for (const auto* texts : {&feed.params, &feed.tags})
      for (const auto& [name, value] : *texts)
        if (name != "model") labels.emplace_back(name, value);
    info.add(labels, 1);
    for (const FeedAnswer& answer : feed.answers) {
      const Labels of = {{"model", feed.model}, {"evidence", answer.evidence}};
      recommended.add(of, answer.devices);
      if (answer.certain) certain.add(of, *answer.certain ? 1 : 0);
    }
  }
  return info.text() + time.text() + recommended.text() + certain.text();
}

Labels labels_of(const Feed& feed, const FeedRow& row) {
  return {{"model", feed.model},
          {"evidence", row.evidence},
          {"mode", row.mode},
          {"backend", row.backend},
          {"devices", std::to_string(row.devices)},
          {"nodes", std::to_string(row.nodes)}};
}

std::string about_rows(const std::vector<Feed>& feeds, const FeedMetric& metric) {
  const std::string name = metric.name, help = metric.help,
                    level = ", at 95 % if measured, else at 90 %";
  Family value(name, metric.unit, help),
      low(name + "_low", metric.unit, help + ": lower end" + level),
      high(name + "_high", metric.unit, help + ": upper end" + level);
  for (const Feed& feed : feeds)
    for (const FeedRow& row : feed.rows) {
      const auto found = row.values.find(&metric);
      if (found == row.values.end()) continue;
      const Labels labels = labels_of(feed, row);
      value.add(labels, found->second.value);
      low.add(labels, found->second.low);
      high.add(labels, found->second.high);
    }
  return value.text() + low.text() + high.text();
}

std::string about_marks(const std::vector<Feed>& feeds) {
  Family best("configuration_best", "",
              "1 for the best valid configuration of its number of devices");
  Family valid("configuration_valid", "", "0 if it cannot win, such as oversubscribed ones");
  for (const Feed& feed : feeds)
    for (const FeedRow& row : feed.rows) {
      best.add(labels_of(feed, row), row.best ? 1 : 0);
      valid.add(labels_of(feed, row), row.valid ? 1 : 0);
    }
  return best.text() + valid.text();
}

}  // namespace

std::string openmetrics_text(const std::vector<Feed>& feeds) {
  std::string text = about_answers(feeds);
  for (const FeedMetric& metric : kFeedMetrics) text += about_rows(feeds, metric);
  return text + about_marks(feeds) + "# EOF\n";
}

std::string export_openmetrics(const std::vector<Feed>& feeds, const ExportTarget& target) {
  write_text(target.path, openmetrics_text(feeds));
  return target.path;
}

}  // namespace howmany::reports
