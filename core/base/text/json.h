// Reading JSON that cannot be trusted: a size and a depth limit, the bare NaN and Infinity that
// Google Benchmark writes taken as null, and an InputError that names the file and the place for
// anything that is not what it should be. Values only; not tied to any thread.
//
//   JsonNode root(json, "summary.json");
//   double low = root.at("metrics").at("efficiency").at("low").number();
//   // throws "[summary.json] metrics.efficiency.low: expected a number, found a string"
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace howmany {

// The text with its non-finite tokens as null, for a parser of one's own. Throws InputError when it
// is nested too deeply.
std::string plain_json(std::string text, const std::string& source);
// Throws InputError with `source`, line and column. Objects keep the last of two equal keys.
nlohmann::json parse_json(std::string text, const std::string& source);
// Indented; what is not finite becomes null, what is not UTF-8 the replacement character.
std::string dump_json(const nlohmann::ordered_json& json);
// The same on one line.
std::string dump_json_line(const nlohmann::ordered_json& json);
// null if there is no value or it is not finite.
nlohmann::ordered_json number_or_null(const std::optional<double>& value);

// A value and where it stands. The json must outlive it.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string source)
      : JsonNode(value, std::move(source), "") {}

  const nlohmann::json& value() const { return *value_; }
  bool is_null() const;

  JsonNode at(const std::string& key) const;                      // a member that must be there
  std::optional<JsonNode> find(const std::string& key) const;     // absent or null: nothing
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
