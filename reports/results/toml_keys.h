// SPDX-License-Identifier: Apache-2.0
// Reads untrusted TOML. Throws InputError with file and line. Values only; not tied to any thread.
//
//   const toml::table file = parse_toml(text, "x.toml");
//   TomlKeys keys(file, "x.toml");
//   const std::string name = keys.text("name");
//   keys.close();  // throws "x.toml:3: other: unknown key"
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// Some malformed keys break assertions of toml++ 3.3, which are undefined behaviour with NDEBUG.
namespace howmany::reports {
constexpr void require_toml(bool condition) {
  if (!condition) throw std::invalid_argument("malformed TOML");
}
}  // namespace howmany::reports
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) ::howmany::reports::require_toml(static_cast<bool>(condition))
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include "core/base/error.h"
#include "core/base/text/table.h"

namespace howmany::reports {

// A table of the file. Every key must be read; close() refuses the others.
class TomlKeys {
 public:
  TomlKeys(const toml::table& table, std::string source, std::string prefix = "")
      : table_(table), source_(std::move(source)), prefix_(std::move(prefix)) {}

  [[noreturn]] void fail(const toml::node* node, const std::string& key,
                         const std::string& why) const {
    const auto line = (node == nullptr ? table_.source() : node->source()).begin.line;
    throw InputError(
        fmt::format("{}:{}: {}{}: {}", source_, line, prefix_, printable(key), printable(why)));
  }

  const toml::node* find(const char* key) {
    read_.emplace_back(key);
    return table_.get(key);
  }
  const toml::node& need(const char* key) {
    const toml::node* const node = find(key);
    if (node == nullptr) fail(nullptr, key, "is missing");
    return *node;
  }

  std::string text(const char* key) {
    const toml::node& node = need(key);
    const auto value = node.value_exact<std::string>();
    if (!value || value->empty() || value->size() > 500) fail(&node, key, "expected a text");
    return *value;
  }
  double number_of(const toml::node& node, const std::string& key, double low, double high) const {
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value || !(*value >= low) || !(*value <= high))
      fail(&node, key, fmt::format("expected a number from {:g} to {:g}", low, high));
    return *value;
  }
  double number(const char* key, double low, double high) {
    return number_of(need(key), key, low, high);
  }
  std::optional<double> number_if(const char* key, double low, double high) {
    const toml::node* const node = find(key);
    return node == nullptr ? std::nullopt : std::optional(number_of(*node, key, low, high));
  }
  int count(const char* key, double high) {
    const double value = number(key, 1, high);
    if (value != std::floor(value)) fail(&need(key), key, "expected a whole number");
    return static_cast<int>(value);
  }
  const toml::table* table(const char* key) {
    const toml::node* const node = find(key);
    if (node == nullptr) return nullptr;
    if (!node->is_table()) fail(node, key, "expected a table");
    return node->as_table();
  }
  // Returns the tables of [[key]], of which there may be none.
  std::vector<TomlKeys> tables(const char* key, size_t most = 200) {
    std::vector<TomlKeys> found;
    const toml::node* const node = find(key);
    if (node == nullptr) return found;
    const toml::array* const array = node->as_array();
    if (array == nullptr || array->size() > most)
      fail(node, key, fmt::format("expected [[{}]], {} at most", key, most));
    for (const toml::node& one : *array) {
      if (!one.is_table()) fail(&one, key, fmt::format("expected [[{}]]", key));
      found.emplace_back(*one.as_table(), source_,
                         fmt::format("{}{}[{}].", prefix_, key, found.size() + 1));
    }
    return found;
  }
  TomlKeys inside(const toml::table& table, const char* key) const {
    return {table, source_, fmt::format("{}{}.", prefix_, key)};
  }
  const toml::table& all() const { return table_; }

  void close() const {
    for (const auto& [key, node] : table_)
      if (std::ranges::find(read_, key.str()) == read_.end())
        fail(&node, std::string(key.str()), "unknown key");
  }

 private:
  const toml::table& table_;
  std::string source_, prefix_;
  std::vector<std::string> read_;
};

toml::table parse_toml(std::string_view text, const std::string& source);

}  // namespace howmany::reports
