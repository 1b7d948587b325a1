// SPDX-License-Identifier: Apache-2.0
#include "benches/common/tuning_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "core/gpu/tuning.h"
#include "parallel/launch/program_id.h"

namespace howmany::benches {
namespace {

constexpr const char* kChoices = "choices";

std::string cache_folder() {
  const auto of = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr || *value != '/' ? "" : value);
  };
  if (const std::string cache = of("XDG_CACHE_HOME"); !cache.empty()) return cache;
  const std::string home = of("HOME");
  return home.empty() ? "" : home + "/.cache";
}

// Returns the choices in the file. Empty if there are none, or not of these libraries.
std::vector<int64_t> kept() try {
  const std::string path = tuning_file();
  if (path.empty() || !std::filesystem::exists(path)) return {};
  const nlohmann::json root = parse_json(read_text(path), path);
  std::vector<int64_t> choices;
  for (const JsonNode& value : JsonNode(root, path).at(kChoices).items())
    choices.push_back(value.integer());
  return choices;
} catch (const std::exception&) {
  return {};
}

void keep() try {
  const std::string path = tuning_file();
  const std::vector<int64_t> choices = gpu::tuning();
  if (path.empty() || choices.empty() || choices == kept()) return;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  // Jobs on several hosts may share the folder.
  const std::string own = fmt::format("{}.{}.{}", path, host_name(), ::getpid());
  write_text(own, dump_json_line({{kChoices, choices}}));
  std::filesystem::rename(own, path);
} catch (const std::exception&) {
  // It is measured again next time.
}

void use(const std::vector<int64_t>& choices) try {
  gpu::use_tuning(choices);
} catch (const std::invalid_argument&) {
  // The file has other contents.
}

// Returns the list of that rank. Collective.
std::vector<int64_t> broadcast(Comm& comm, const std::vector<int64_t>& own, int rank) {
  const Tensor length = Tensor::from<int64_t>({static_cast<int64_t>(own.size())}, {1});
  comm.broadcast(length, rank);
  const auto count = static_cast<int64_t>(length.item());
  if (count == 0) return {};
  const bool mine = rank == comm.rank();
  const Tensor list = mine ? Tensor::from(own, {count}) : Tensor::zeros({count}, Dtype::i64);
  comm.broadcast(list, rank);
  const auto values = list.values<int64_t>();
  return {values.begin(), values.end()};
}

}  // namespace

std::string tuning_file() {
  const std::string folder = cache_folder();
  std::string libraries = gpu::tuning_libraries();
  if (folder.empty() || libraries.empty()) return "";
  std::ranges::replace_if(
      libraries, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.'; }, '-');
  return folder + "/howmany/tuning/" + libraries + ".json";
}

void use_kept_tuning(Comm& comm) {
  use(broadcast(comm, comm.rank() == 0 ? kept() : std::vector<int64_t>(), 0));
}

void agree_on_tuning(Comm& comm, bool keep_them) {
  const std::vector<int64_t> own = gpu::tuning();
  std::vector<int64_t> all;  // the last choice of a problem counts, so rank 0's are last
  for (int rank = comm.size() - 1; rank >= 0; --rank) {
    const std::vector<int64_t> list = broadcast(comm, own, rank);
    all.insert(all.end(), list.begin(), list.end());
  }
  gpu::use_tuning(all);
  if (keep_them && comm.rank() == 0) keep();
}

}  // namespace howmany::benches
