#include "core/model.h"

#include "core/error.h"

namespace howmany {
namespace {

ModelOptions parse_options(std::string_view text) {
  ModelOptions options;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const size_t equals = item.find('=');
    HM_REQUIRE(equals != std::string_view::npos && equals > 0,
               "[model] option '{}' is not of the form key=value", item);
    const bool fresh = options.emplace(item.substr(0, equals), item.substr(equals + 1)).second;
    HM_REQUIRE(fresh, "[model] option '{}' is given twice", item.substr(0, equals));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return options;
}

}  // namespace

std::vector<std::string_view> model_names() {
  return {
#define X(name, what) #name,
      HM_MODELS(X)
#undef X
  };
}

ModelSpec make_model(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const ModelOptions options =
      colon == std::string_view::npos ? ModelOptions{} : parse_options(text.substr(colon + 1));
#define X(id, what) \
  if (name == #id) return models::id(options);
  HM_MODELS(X)
#undef X
  throw std::invalid_argument("[model] " + unknown_name("model", name, model_names()));
}

}  // namespace howmany
