// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/base/error.h"

namespace howmany {
namespace {

constexpr int kMaxDepth = 64;

// Refuses an object that has a key twice, because readers disagree about which of the two counts.
// One document each.
class UniqueKeys {
 public:
  // `source` is the name of the file in errors.
  explicit UniqueKeys(std::string source) : source_(std::move(source)) {}

  void start_object() {
    if (depth_ == objects_.size()) objects_.emplace_back();
    objects_[depth_++].keys.clear();
  }
  void end_object() { --depth_; }
  // Returns false if the object has the key already and it may repeat. Throws InputError with the
  // file and the path of the key if it may not.
  bool key(const std::string& name, const std::function<bool(const std::string&)>& may_repeat) {
    Object& object = objects_[depth_ - 1];
    object.last = name;
    if (object.keys.insert(name).second) return true;
    std::string path;
    for (size_t i = 0; i < depth_; ++i) path += (i > 0 ? "." : "") + objects_[i].last;
    if (may_repeat && may_repeat(path)) return false;
    throw InputError(fmt::format("[{}] the key \"{}\" appears twice in one object", source_, path));
  }

 private:
  struct Object {
    std::unordered_set<std::string> keys;
    std::string last;
  };
  std::string source_;
  std::vector<Object> objects_;  // beyond depth_: kept, so that their memory is used again
  size_t depth_ = 0;
};

bool starts_with_at(const std::string& text, size_t at, std::string_view word) {
  return text.compare(at, word.size(), word) == 0;
}

// Returns the length of a non-finite number as printf writes it, or 0. Google Benchmark writes
// these tokens, though JSON does not allow them.
size_t non_finite_token(const std::string& text, size_t at) {
  constexpr std::string_view kFirst = "-+NnIi";
  if (kFirst.find(text[at]) == std::string_view::npos) return 0;
  const size_t sign = text[at] == '-' || text[at] == '+' ? 1 : 0;
  for (std::string_view word : {"Infinity", "infinity", "NaN", "nan", "inf", "Inf"}) {
    if (starts_with_at(text, at + sign, word)) return sign + word.size();
  }
  return 0;
}

// Escapes U+007F to U+009F, which some terminals obey. The library leaves them as they are, and
// they occur in strings only.
std::string without_wide_controls(std::string text) {
  std::string safe;
  size_t copied = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool pair = text[i] == '\xC2' && i + 1 < text.size() &&
                      (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (!pair && text[i] != '\x7F') continue;
    const auto code = static_cast<unsigned char>(text[pair ? i + 1 : i]);
    safe.append(text, copied, i - copied).append(fmt::format("\\u00{:02x}", code));
    i += pair ? 1 : 0;
    copied = i + 1;
  }
  return copied == 0 ? std::move(text) : safe.append(text, copied);
}

std::string kind(const nlohmann::json& value) { return std::string("found ") + value.type_name(); }

}  // namespace

// Makes one pass outside strings, replaces non-finite tokens by null and bounds the depth. Without
// the bound, a value with a million levels overflows the stack of a recursive reader. Most texts
// need no change and are not copied.
std::string plain_json(std::string text, const std::string& source) {
  std::string plain;
  size_t copied = 0;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (const size_t token = non_finite_token(text, i)) {
      plain.append(text, copied, i - copied).append("null");
      copied = i + token;
      i = copied - 1;
      continue;
    }
    in_string = c == '"';
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (depth > kMaxDepth) {
      throw InputError(fmt::format("[{}] nested deeper than {} levels", source, kMaxDepth));
    }
  }
  if (copied == 0) return text;
  return plain.append(text, copied);
}

nlohmann::json parse_json(std::string text, const std::string& source) {
  return parse_json(std::move(text), source, {});
}

nlohmann::json parse_json(std::string text, const std::string& source,
                          const std::function<bool(const std::string& path)>& may_repeat) {
  text = plain_json(std::move(text), source);
  try {
    UniqueKeys keys(source);
    const auto check = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
      using Event = nlohmann::json::parse_event_t;
      if (event == Event::object_start) keys.start_object();
      if (event == Event::object_end) keys.end_object();
      return event != Event::key || keys.key(value.get_ref<const std::string&>(), may_repeat);
    };
    return nlohmann::json::parse(text, check);
  } catch (const nlohmann::json::exception& error) {
    std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line ..."
    if (const size_t end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
    throw InputError(fmt::format("[{}] is not JSON: {}", source, what));
  }
}

std::string dump_json(const nlohmann::ordered_json& json) {
  return without_wide_controls(
             json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) +
         "\n";
}

std::string dump_json_line(const nlohmann::ordered_json& json) {
  return without_wide_controls(
             json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) +
         "\n";
}

void JsonNode::fail(const std::string& what) const {
  throw InputError(path_.empty() ? fmt::format("[{}] {}", source_, what)
                                 : fmt::format("[{}] {}: {}", source_, path_, what));
}

void JsonNode::expect(bool ok, std::string_view what) const {
  if (!ok) fail(fmt::format("expected {}, {}", what, kind(*value_)));
}

JsonNode JsonNode::child(const nlohmann::json& value, const std::string& step) const {
  return {value, source_, path_.empty() || step.front() == '[' ? path_ + step : path_ + "." + step};
}

nlohmann::ordered_json number_or_null(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

bool JsonNode::is_null() const { return value_->is_null(); }

JsonNode JsonNode::at(const std::string& key) const {
  expect(value_->is_object(), "an object");
  const auto it = value_->find(key);
  if (it == value_->end()) fail(fmt::format("\"{}\" is missing", key));
  return child(*it, key);
}

std::optional<JsonNode> JsonNode::find(const std::string& key) const {
  expect(value_->is_object(), "an object");
  const auto it = value_->find(key);
  if (it == value_->end() || it->is_null()) return std::nullopt;
  return child(*it, key);
}

std::vector<JsonNode> JsonNode::items() const {
  expect(value_->is_array(), "an array");
  std::vector<JsonNode> nodes;
  for (size_t i = 0; i < value_->size(); ++i) {
    nodes.push_back(child((*value_)[i], fmt::format("[{}]", i)));
  }
  return nodes;
}

std::vector<std::pair<std::string, JsonNode>> JsonNode::members() const {
  expect(value_->is_object(), "an object");
  std::vector<std::pair<std::string, JsonNode>> nodes;
  for (const auto& [key, value] : value_->items()) nodes.emplace_back(key, child(value, key));
  return nodes;
}

double JsonNode::number() const {
  expect(value_->is_number(), "a number");
  const auto number = value_->get<double>();
  if (!std::isfinite(number)) fail("expected a finite number");
  return number;
}

int64_t JsonNode::integer() const {
  expect(value_->is_number_integer(), "an integer");
  if (value_->is_number_unsigned() && value_->get<uint64_t>() > INT64_MAX) fail("is too large");
  return value_->get<int64_t>();
}

int64_t JsonNode::integer_between(int64_t low, int64_t high) const {
  const int64_t number = integer();
  if (number < low || number > high) {
    fail(fmt::format("expected {} to {}, found {}", low, high, number));
  }
  return number;
}

bool JsonNode::boolean() const {
  expect(value_->is_boolean(), "true or false");
  return value_->get<bool>();
}

std::string JsonNode::string() const {
  expect(value_->is_string(), "a string");
  return value_->get<std::string>();
}

std::vector<std::string> JsonNode::strings() const {
  std::vector<std::string> all;
  for (const JsonNode& node : items()) all.push_back(node.string());
  return all;
}

}  // namespace howmany
