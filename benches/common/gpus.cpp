// SPDX-License-Identifier: Apache-2.0
#include "benches/common/gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "benches/common/gpu_source.h"
#include "core/base/amd_gpus.h"
#include "core/base/statistics.h"
#include "core/host/cgroup.h"

namespace howmany::benches {
namespace {

using nlohmann::json;

struct Found {
  std::unique_ptr<GpuSource> source;
  Gpus gpus;
};

std::string why_none(const std::string& nvidia, const std::string& amd) {
  const std::string intel = intel_gpu_driver(system_root());
  std::string why = nvidia.empty() ? amd : nvidia + (amd.empty() ? "" : "; ") + amd;
  if (why.empty() && intel.empty()) return "no driver of NVIDIA or AMD found";
  if (!intel.empty())
    why += fmt::format("{}Intel GPUs (driver {}) are not supported: CPU cores are",
                       why.empty() ? "" : "; ", intel);
  return why;
}

// A machine with both has NVIDIA's only: one PyTorch serves one of them.
Found find() {
  Found nvidia{nvidia_source(), {}};
  nvidia.gpus = nvidia.source->find();
  Found found = std::move(nvidia);
  if (found.gpus.list.empty() && found.gpus.hidden == 0) {
    Found amd{amd_source(system_root()), {}};
    amd.gpus = amd.source->find();
    if (amd.gpus.list.empty() && amd.gpus.hidden == 0)
      found.gpus.because = why_none(found.gpus.because, amd.gpus.because);
    else
      found = std::move(amd);
  }
  Gpus& gpus = found.gpus;
  for (size_t index = 0; index < gpus.list.size(); ++index) gpus.list[index]["index"] = index;
  if (gpus.list.empty() && gpus.hidden > 0)
    gpus.because = fmt::format("all are hidden by {}", gpus.hidden_by);
  return found;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::string> words_of(const char* list) {
  std::vector<std::string> words;
  std::istringstream text(list == nullptr ? "" : list);
  for (std::string word; std::getline(text, word, ',');) words.push_back(word);
  return words;
}

// Returns the number of GPUs if the word names none of them. ROCR and CUDA skip spaces, and ROCR
// the case of letters.
size_t index_of(std::string word, std::vector<std::string> uuids, GpuListReader reader) {
  if (reader != GpuListReader::hip) word.erase(0, word.find_first_not_of(' '));
  size_t index = uuids.size();
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  if (error == std::errc() && end == word.data() + word.size()) return index;
  if (!lower(word).starts_with("gpu-")) return uuids.size();
  if (reader == GpuListReader::rocr) {
    word = lower(word);
    for (std::string& uuid : uuids) uuid = lower(uuid);
  }
  const auto is_it = [&](const std::string& uuid) { return uuid.starts_with(word); };
  return std::ranges::count_if(uuids, is_it) == 1
             ? static_cast<size_t>(std::ranges::find_if(uuids, is_it) - uuids.begin())
             : uuids.size();
}

}  // namespace

Gpus find_gpus() { return find().gpus; }

json find_gpu_links(const json& gpus) {
  json links = json::array();
  if (gpus.size() < 2) return links;
  const Found found = find();
  for (size_t to = 0; to < gpus.size(); ++to)
    for (size_t from = 0; from < to; ++from)
      if (const std::string link = found.source->link(gpus[from], gpus[to]); !link.empty())
        links.push_back({{"from", from}, {"to", to}, {"link", link}});
  return links;
}

void add_place(const std::filesystem::path& device, json& gpu) {
  if (const auto near = read_line(device / "local_cpulist")) gpu["near_cores"] = *near;
  const std::string text = read_line(device / "numa_node").value_or("");
  int node = -1;
  std::from_chars(text.data(), text.data() + text.size(), node);
  if (node >= 0) gpu["numa_node"] = node;
}

std::string show_gpus(GpuVendor vendor, const std::vector<int>& indices) {
  const bool amd = vendor == GpuVendor::amd;
  const char* const name = amd ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
  // HIP takes an empty list for all GPUs.
  if (indices.empty()) return fmt::format("{}={}", name, amd ? "-1" : "");
  std::vector<std::string> given = words_of(std::getenv(name));
  if (amd && given.empty()) given = words_of(std::getenv("CUDA_VISIBLE_DEVICES"));
  std::vector<std::string> chosen;
  for (const int device : indices) {
    const auto index = static_cast<size_t>(device);
    chosen.push_back(index < given.size() ? given[index] : std::to_string(index));
  }
  return fmt::format("{}={}", name, fmt::join(chosen, ","));
}

struct GpuMeter::Metered {
  std::unique_ptr<GpuSource> source;
  std::vector<json> gpus;
};

GpuMeter::GpuMeter(const std::vector<int>& indices) {
  if (indices.empty()) return;
  Found found = find();
  metered_ = std::make_unique<Metered>();
  for (const int index : indices)
    if (index >= 0 && static_cast<size_t>(index) < found.gpus.list.size())
      metered_->gpus.push_back(found.gpus.list[static_cast<size_t>(index)]);
  metered_->source = std::move(found.source);
}

GpuMeter::~GpuMeter() = default;

void GpuMeter::sample() {
  if (!metered_) return;
  for (const json& gpu : metered_->gpus) {
    const GpuUse use = metered_->source->use(gpu);
    if (std::isfinite(use.memory_bytes)) most_bytes_ = std::max(most_bytes_, use.memory_bytes);
    if (!std::isfinite(use.utilisation)) continue;
    sum_ += use.utilisation;
    ++samples_;
  }
}

double GpuMeter::utilisation() const { return samples_ == 0 ? kNaN : sum_ / samples_; }

double GpuMeter::memory_bytes() const { return most_bytes_ > 0 ? most_bytes_ : kNaN; }

std::vector<size_t> visible_gpus(const std::vector<std::string>& uuids, const char* variable,
                                 GpuListReader reader) {
  std::vector<size_t> seen;
  const bool all = variable == nullptr || (reader == GpuListReader::hip && *variable == '\0');
  for (size_t i = 0; all && i < uuids.size(); ++i) seen.push_back(i);
  if (all) return seen;
  for (const std::string& word : words_of(variable)) {
    const size_t index = index_of(word, uuids, reader);
    if (index >= uuids.size()) break;
    if (std::ranges::find(seen, index) == seen.end())
      seen.push_back(index);
    else if (reader == GpuListReader::cuda)
      return {};
    else if (reader == GpuListReader::rocr)
      break;
  }
  return seen;
}

}  // namespace howmany::benches
