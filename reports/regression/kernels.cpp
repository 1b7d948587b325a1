// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/kernels.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <span>

#include "core/base/text/json.h"
#include "core/base/text/names.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

volatile uint64_t sink;  // prevents the work from being optimized away

uint64_t mixed(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  return x ^ (x >> 33);
}

// Data of the kernels, created outside of the timing.
struct Data {
  std::vector<uint64_t> table = std::vector<uint64_t>(size_t{1} << 18);  // 2 MiB
  std::vector<char> from = std::vector<char>(16384, 1), to = std::vector<char>(16384);
  std::vector<uint32_t> shuffled = std::vector<uint32_t>(64);
  int zero = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  Data() {
    for (size_t i = 0; i < table.size(); ++i) table[i] = mixed(i);
    for (size_t i = 0; i < shuffled.size(); ++i) shuffled[i] = static_cast<uint32_t>(table[i]);
  }
  ~Data() {
    if (zero >= 0) ::close(zero);
  }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
};

void hash(Data&, int64_t units) {
  uint64_t x = 1;
  for (int64_t i = 0; i < units * 120; ++i) x = mixed(x + 1);
  sink = x;
}

void multiply_add(Data&, int64_t units) {
  std::array<double, 8> sums = {};
  for (int64_t i = 0; i < units * 60; ++i) {
    for (double& sum : sums) sum = sum * 0.999 + 1.0;
  }
  sink = static_cast<uint64_t>(std::accumulate(sums.begin(), sums.end(), 0.0));
}

void stream(Data& data, int64_t units) {
  uint64_t sum = 0;
  size_t at = 0;
  for (int64_t unit = 0; unit < units; ++unit) {
    for (int i = 0; i < 512; ++i) sum += data.table[at + static_cast<size_t>(i)];
    at = (at + 512) % data.table.size();
  }
  sink = sum;
}

void gather(Data& data, int64_t units) {
  for (int64_t unit = 0; unit < units; ++unit) {  // each follows the same path of 40 KiB
    uint64_t x = 1;
    for (uint64_t i = 0; i < 640; ++i) x = data.table[(x + i) % data.table.size()];
    sink = x;
  }
}

void sort(Data& data, int64_t units) {
  std::array<uint32_t, 64> part;
  for (int64_t unit = 0; unit < units; ++unit) {
    std::copy(data.shuffled.begin(), data.shuffled.end(), part.begin());
    std::sort(part.begin(), part.end());
    sink = part[static_cast<size_t>(unit % 64)];
  }
}

void allocate(Data&, int64_t units) {
  for (int64_t unit = 0; unit < units * 8; ++unit) {
    const auto size = static_cast<size_t>(16 + mixed(static_cast<uint64_t>(unit % 512)) % 512);
    const auto block = std::make_unique_for_overwrite<char[]>(size);
    sink = reinterpret_cast<uintptr_t>(block.get());  // or the pair is optimized away
  }
}

void copy(Data& data, int64_t units) {
  for (int64_t unit = 0; unit < units; ++unit) {
    data.from[static_cast<size_t>(unit) % data.from.size()] = static_cast<char>(unit);
    std::memcpy(data.to.data(), data.from.data(), data.to.size());
    sink = static_cast<uint64_t>(data.to[static_cast<size_t>(unit) % data.to.size()]);
  }
}

void system_call(Data& data, int64_t units) {
  for (int64_t unit = 0; unit < units; ++unit) {
    sink = static_cast<uint64_t>(::read(data.zero, data.to.data(), 512));
  }
}

// The number of units is large enough that one percent is a whole number.
struct Kernel {
  const char* name;
  void (*run)(Data&, int64_t units);
  int64_t units;
};
constexpr std::array kKernels = {
    Kernel{"hash", hash, 1000},     Kernel{"multiply_add", multiply_add, 3000},
    Kernel{"stream", stream, 1500}, Kernel{"gather", gather, 100},
    Kernel{"sort", sort, 1500},     Kernel{"allocate", allocate, 1000},
    Kernel{"copy", copy, 800},      Kernel{"system_call", system_call, 1000}};

double elapsed(const Kernel& kernel, Data& data, int64_t units) {
  const auto begin = std::chrono::steady_clock::now();
  kernel.run(data, units);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Times the units alone. A warm-up replaces the cache contents of the previous kernel. The cost of
// the call and of reading the clock is subtracted.
double seconds_of(const Kernel& kernel, Data& data, int64_t units) {
  kernel.run(data, kernel.units / 6);
  const double nothing = elapsed(kernel, data, 0);
  return elapsed(kernel, data, units) - nothing;
}

std::vector<const Kernel*> chosen(const std::vector<std::string>& names) {
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : kKernels) {
    if (names.empty() || std::find(names.begin(), names.end(), kernel.name) != names.end()) {
      kernels.push_back(&kernel);
    }
  }
  for (const std::string& name : names) {
    const std::vector<std::string> known = kernel_names();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw InputError(fmt::format("unknown kernel \"{}\"{}", name, did_you_mean(name, known)));
    }
  }
  return kernels;
}

nlohmann::ordered_json row(const char* name, int repetition, int64_t units, double seconds) {
  return {{"name", name},        {"run_type", "iteration"},    {"repetition_index", repetition},
          {"iterations", units}, {"real_time", seconds * 1e9}, {"time_unit", "ns"}};
}

}  // namespace

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const Kernel& kernel : kKernels) names.emplace_back(kernel.name);
  return names;
}

int run_worker(const WorkerArguments& a) {
  const std::vector<const Kernel*> kernels = chosen(a.kernels);
  const auto now =
      static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  std::mt19937_64 random(a.seed != 0 ? a.seed : now);
  Data data;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (int repetition = -1; repetition < a.repetitions; ++repetition) {  // the first is a warm-up
    std::vector<const Kernel*> order = kernels;
    std::shuffle(order.begin(), order.end(), random);
    for (const Kernel* kernel : order) {
      const auto units = static_cast<int64_t>(
          std::llround(static_cast<double>(kernel->units) * (1 + a.extra / 100)));
      const double seconds = seconds_of(*kernel, data, units);
      if (repetition >= 0) rows.push_back(row(kernel->name, repetition, units, seconds));
    }
  }
  const nlohmann::ordered_json context = {{"executable", "howmany gate-worker"}};
  fmt::print("{}", dump_json_line({{"context", context}, {"benchmarks", rows}}));
  return 0;
}

}  // namespace howmany::reports
