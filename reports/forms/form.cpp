// SPDX-License-Identifier: Apache-2.0
#include "reports/forms/form.h"

#include <embedded/reports/forms/all.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "core/base/text/names.h"
#include "reports/results/toml_keys.h"

namespace howmany::reports {
namespace {

bool one_of_two(TomlKeys& keys, const char* key, const char* yes, const char* no) {
  const std::string text = keys.text(key);
  if (text != yes && text != no)
    keys.fail(&keys.need(key), key, fmt::format("expected \"{}\" or \"{}\"", yes, no));
  return text == yes;
}

bool flag_of(TomlKeys& keys, const char* key) {
  const toml::node& node = keys.need(key);
  const auto value = node.value_exact<bool>();
  if (!value) keys.fail(&node, key, "expected true or false");
  return *value;
}

template <size_t size>
std::vector<std::string> words_of(TomlKeys& keys, const char* key,
                                  const std::array<const char*, size>& known) {
  const toml::node& node = keys.need(key);
  if (!node.is_array()) keys.fail(&node, key, "expected a list");
  std::vector<std::string> words;
  for (const toml::node& one : *node.as_array()) {
    words.push_back(one.value_exact<std::string>().value_or(""));
    if (std::ranges::find(known, words.back()) == known.end())
      keys.fail(&one, key, fmt::format("expected of: {}", fmt::join(known, ", ")));
  }
  return words;
}

AllocationUnit unit_of(TomlKeys& form) {
  const toml::table* const table = form.table("unit");
  if (table == nullptr) form.fail(nullptr, "unit", "is missing");
  TomlKeys keys = form.inside(*table, "unit");
  AllocationUnit unit;
  unit.name = keys.text("name");
  unit.per_node = one_of_two(keys, "per", "node", "gpu");
  if (table->contains("note")) unit.note = keys.text("note");
  for (TomlKeys& one : keys.tables("factor")) {
    unit.factors.emplace_back(one.text("gpu"), one.number("value", 0.01, 100));
    one.close();
  }
  keys.close();
  return unit;
}

std::string surety_of(TomlKeys& keys) {
  const std::string sure = keys.text("sure");
  if (sure != "read" && sure != "abstract" && sure != "memory")
    keys.fail(&keys.need("sure"), "sure", "expected \"read\", \"abstract\" or \"memory\"");
  return sure;
}

}  // namespace

std::optional<double> AllocationUnit::of_gpu(const std::string& gpu) const {
  if (factors.empty()) return 1;
  for (const auto& [words, value] : factors) {
    std::istringstream stream(words);
    bool all = true;
    for (std::string word; stream >> word;) all = all && gpu.find(word) != std::string::npos;
    if (all) return value;
  }
  return std::nullopt;
}

bool Form::has(const std::string& column) const {
  return std::ranges::find(columns, column) != columns.end();
}

Form parse_form(const std::string& text, const std::string& source) {
  const toml::table file = parse_toml(text, source);
  TomlKeys keys(file, source);
  Form form;
  form.title = keys.text("title");
  form.source = keys.text("source");
  form.read = keys.text("read");
  form.sure = surety_of(keys);
  form.threshold = keys.number_if("threshold", 0.01, 1);
  form.min_node_counts = keys.number_if("min_node_counts", 1, 100);
  form.total_time = one_of_two(keys, "efficiency", "total_time", "rate");
  form.linear = one_of_two(keys, "axes", "linear", "log");
  form.columns = words_of(keys, "columns", kFormColumns);
  form.plots = words_of(keys, "plots", kFormPlots);
  form.together = one_of_two(keys, "projections", "together", "apart");
  form.batch_script = flag_of(keys, "batch_script");
  form.software = flag_of(keys, "software");
  form.experiments = flag_of(keys, "experiments");
  form.unit = unit_of(keys);
  for (TomlKeys& one : keys.tables("section")) {
    form.sections.push_back({one.text("title"), one.text("text")});
    one.close();
  }
  keys.close();
  return form;
}

std::vector<std::string> form_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : embedded::kForms) names.emplace_back(name);
  return names;
}

Form find_form(const std::string& name) {
  for (const auto& [known, text] : embedded::kForms) {
    if (name != known) continue;
    Form form = parse_form(text, name + ".toml");
    form.name = name;
    return form;
  }
  throw InputError(fmt::format("unknown form \"{}\"{} (there are {})", name,
                               did_you_mean(name, form_names()), fmt::join(form_names(), ", ")));
}

FormChoice parse_form_choice(const std::string& emit) {
  constexpr std::string_view kStart = "proposal=";
  if (!emit.starts_with(kStart))
    throw InputError(fmt::format("expected slurm, proposal or proposal=FORM, not \"{}\"", emit));
  const std::string text = emit.substr(kStart.size());
  const size_t colon = text.find(':');
  const std::string format = colon == std::string::npos ? "" : text.substr(colon);
  if (!format.empty() && format != ":latex")
    throw InputError(fmt::format("expected :latex or nothing after the form, not \"{}\"", format));
  return {find_form(text.substr(0, colon)).name, !format.empty()};
}

}  // namespace howmany::reports
