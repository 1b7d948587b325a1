// SPDX-License-Identifier: Apache-2.0
#include "core/nn/model.h"

#include <cctype>

#include "core/base/error.h"

namespace howmany {
namespace {

// Other names of models, with their options.
struct Alias {
  std::string_view name, model;
};
constexpr Alias kAliases[] = {
    {"resnet101", "resnet50:depth=101"},  {"resnet152", "resnet50:depth=152"},
    {"vgg16_bn", "vgg16:batchnorm=yes"},  {"vit_l_16", "vit_b_16:width=1024,layers=24,heads=16"},
    {"mistral", "llama:size=mistral_7b"}, {"mistral_7b", "llama:size=mistral_7b"}};

// Without case, "-" and "_": "GPT2-XL" is gpt2xl.
std::string plain(std::string_view name) {
  std::string letters;
  for (const unsigned char c : name)
    if (c != '-' && c != '_') letters += static_cast<char>(std::tolower(c));
  return letters;
}

// The known name and the options of "vit-l-16", "gpt2_xl" or "llama-7b". Given options win.
NamedOptions resolved(NamedOptions given) {
  for (const Alias& alias : kAliases) {
    if (plain(alias.name) != plain(given.name)) continue;
    NamedOptions known = parse_named("model", alias.model);
    given.options.insert(known.options.begin(), known.options.end());
    given.name = known.name;
    return given;
  }
  for (const std::string_view name : model_names()) {
    if (plain(name) == plain(given.name)) {
      given.name = name;
      return given;
    }
    const bool has_sizes = name == "gpt2" || name == "llama";
    if (!has_sizes || !plain(given.name).starts_with(name) || given.options.contains("size"))
      continue;
    given.options.emplace("size", plain(given.name).substr(name.size()));
    given.name = name;
    return given;
  }
  return given;
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
  const auto [name, options] = resolved(parse_named("model", text));
#define X(id, what) \
  if (name == #id) return models::id(options);
  HM_MODELS(X)
#undef X
  std::vector<std::string_view> known = model_names();
  for (const Alias& alias : kAliases) known.push_back(alias.name);
  throw std::invalid_argument("[model] " + unknown_name("model", name, known));
}

}  // namespace howmany
