// SPDX-License-Identifier: Apache-2.0
// Reads untrusted JSON.
//
// Limits. The size and the depth are bounded.
// Non-finite numbers. The bare NaN and Infinity tokens that Google Benchmark writes are read as
//   null.
// Failure. Throws InputError with the file and the place of the error.
// Thread safety. Functions and objects are not tied to a thread.
//
//   JsonNode root(json, "summary.json");
//   double low = root.at("metrics").at("efficiency").at("low").number();
//   // throws "[summary.json] metrics.efficiency.low: expected a number, found a string"
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace howmany {

// Returns the text with non-finite tokens replaced by null, for another parser. Throws InputError
// if the nesting is too deep.
std::string plain_json(std::string text, const std::string& source);
// Throws InputError with `source`, line and column. An object with two equal keys is an error.
nlohmann::json parse_json(std::string text, const std::string& source);
// As above. Of two equal keys, the first counts if `may_repeat` accepts their path, such as
// "benchmarks.threads".
nlohmann::json parse_json(std::string text, const std::string& source,
                          const std::function<bool(const std::string& path)>& may_repeat);
// Returns indented JSON. Numbers that are not finite become null, and invalid UTF-8 becomes the
// replacement character. Control characters are escaped, also U+007F to U+009F.
std::string dump_json(const nlohmann::ordered_json& json);
// As dump_json(), on one line.
std::string dump_json_line(const nlohmann::ordered_json& json);
// Returns null if there is no value or it is not finite.
nlohmann::ordered_json number_or_null(const std::optional<double>& value);

// A value and its path in the document. The nlohmann::json must outlive it.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string source)
      : JsonNode(value, std::move(source), "") {}

  const nlohmann::json& value() const { return *value_; }
  bool is_null() const;

  JsonNode at(const std::string& key) const;                      // throws if the key is missing
  std::optional<JsonNode> find(const std::string& key) const;     // nullopt if missing or null
  std::vector<JsonNode> items() const;                            // of an array
  std::vector<std::pair<std::string, JsonNode>> members() const;  // of an object

  double number() const;  // finite
  int64_t integer() const;
  int64_t integer_between(int64_t low, int64_t high) const;
  bool boolean() const;
  std::string string() const;
  std::vector<std::string> strings() const;

  [[noreturn]] void fail(const std::string& what) const;

 private:
  JsonNode(const nlohmann::json& value, std::string source, std::string path)
      : value_(&value), source_(std::move(source)), path_(std::move(path)) {}
  JsonNode child(const nlohmann::json& value, const std::string& step) const;
  void expect(bool ok, std::string_view what) const;

  const nlohmann::json* value_;
  std::string source_, path_;
};

}  // namespace howmany
