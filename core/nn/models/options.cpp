#include "core/nn/models/options.h"

#include "core/base/error.h"

namespace howmany::models {

void allow(std::string_view model, const ModelOptions& options,
           const std::vector<std::string_view>& keys) {
  allow_options("model", model, options, keys);
}

int64_t positive(const ModelOptions& options, const std::string& key, int64_t otherwise) {
  const auto found = options.find(key);
  return found == options.end() ? otherwise : parse_positive("model", key, found->second);
}

std::vector<int64_t> sizes(const ModelOptions& options, const std::string& key,
                           const std::string& otherwise) {
  const auto found = options.find(key);
  std::string_view text = found == options.end() ? otherwise : found->second;
  std::vector<int64_t> list;
  for (bool more = true; more;) {
    const size_t dash = text.find('-');
    list.push_back(parse_positive("model", key, text.substr(0, dash)));
    more = dash != std::string_view::npos;
    if (more) text.remove_prefix(dash + 1);
  }
  HM_REQUIRE(list.size() >= 2, "[model] {}: expected at least two sizes, such as 64-10", key);
  return list;
}

}  // namespace howmany::models
