// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/forwarded.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/cpu.h"
#include "core/base/text/names.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

constexpr ForwardedOption kOptions[] = {
    {&flag::kData, "synthetic", "", NeedsGpu::kNone, true},
    {&flag::kOnBadImage, "refuse", "skip,refuse", NeedsGpu::kNone, true},
    {&flag::kKernels, "", "", NeedsGpu::kNone, false},
    {&flag::kPrecision, "f32", "f32,tf32,bf16", NeedsGpu::kFirst, false},
};

const ForwardedOption& option_of(std::string_view name) {
  const auto it = std::ranges::find(kOptions, name, &ForwardedOption::name);
  if (it == std::end(kOptions)) throw std::logic_error(fmt::format("no option {}", name));
  return *it;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    words.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

void refuse_unknown(const ForwardedOption& option, const std::string& word) {
  const std::vector<std::string> known = split(option.values);
  if (known.empty() || std::ranges::count(known, word) > 0) return;
  throw InputError(fmt::format("unknown {} \"{}\"{}; there are {}", option.name(), word,
                               did_you_mean(word, known), fmt::join(known, ", ")));
}

bool computes_it(const std::string& device, const std::string& precision) {
  return device.starts_with("cuda") || (precision == "bf16" && cpu_has_bf16());
}

size_t gpus_needed(const ForwardedOption& option, size_t devices) {
  return option.needs_gpu == NeedsGpu::kFirst ? std::min<size_t>(devices, 1) : 0;
}

}  // namespace

std::span<const ForwardedOption> forwarded_options() { return kOptions; }

const std::string& ForwardedOptions::operator[](std::string_view name) const {
  static const std::string none;
  const auto it = given_.find(option_of(name).name());
  return it == given_.end() ? none : it->second;
}

void ForwardedOptions::set(std::string_view name, const std::string& word) {
  const ForwardedOption& option = option_of(name);
  given_.erase(option.name());
  if (!word.empty() && word != option.usual) given_[option.name()] = word;
}

void ForwardedOptions::check(const std::vector<std::string>& devices) const {
  for (const auto& [name, word] : given_) {
    const ForwardedOption& option = option_of(name);
    refuse_unknown(option, word);
    for (const std::string& device : std::span(devices).first(gpus_needed(option, devices.size())))
      if (!computes_it(device, word))
        throw InputError(fmt::format("{} {} needs a GPU{}, and {} is none", name, word,
                                     word == "bf16" ? " or a CPU with AVX512-BF16" : "", device));
    if (option.of_files && !given_.contains("data"))
      throw InputError(fmt::format(
          "--{} {} is about files, and synthetic data has none: give --data", name, word));
  }
}

}  // namespace howmany::reports
