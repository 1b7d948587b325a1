#include "parallel/mode.h"

#include <algorithm>

#include "core/error.h"
#include "core/names.h"

namespace howmany {
namespace {

struct Entry {
  std::string_view name;
  ModeTraits traits;
  std::unique_ptr<Mode> (*make)(ModeArgs);
};

const Entry kEntries[] = {
#define X(name, what, traits) {#name, traits, modes::name},
    HM_MODES(X)
#undef X
};

const Entry& entry_named(std::string_view name) {
  const auto* found = std::find_if(std::begin(kEntries), std::end(kEntries),
                                   [&](auto& e) { return e.name == name; });
  if (found != std::end(kEntries)) return *found;
  throw std::invalid_argument("[mode] " + unknown_name("mode", name, mode_names()));
}

}  // namespace

std::vector<std::string_view> mode_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kEntries) names.push_back(entry.name);
  return names;
}

ModeTraits mode_traits(std::string_view name) { return entry_named(name).traits; }

std::unique_ptr<Mode> make_mode(std::string_view name, ModeArgs args) {
  const Entry& entry = entry_named(name);
  HM_REQUIRE(args.model.layer != nullptr, "[{}] no model given", name);
  HM_REQUIRE(!entry.traits.over_ranks || args.comm != nullptr,
             "[{}] runs over ranks and was given no comm", name);
  HM_REQUIRE(entry.traits.over_devices || args.devices.size() <= 1,
             "[{}] uses one device in each rank, was given {}", name, args.devices.size());
  return entry.make(std::move(args));
}

}  // namespace howmany
