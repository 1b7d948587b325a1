// SPDX-License-Identifier: Apache-2.0
// The main() of a fuzzer for compilers without libFuzzer. One source per program includes it and
// defines fuzz_seeds() and LLVMFuzzerTestOneInput(). Input i is a pure function of (seed, i): a few
// mutations of one of the seeds. A failure prints these two numbers, which reproduce it.
//
//   image_fuzz 20000         inputs 0 .. 19999 of seed 1
//   image_fuzz 1 7 123       only input 123 of seed 7
//   image_fuzz --write DIR   writes the seeds as files, the initial corpus for libFuzzer
//
// If HOWMANY_NIGHTLY is set, the first makes 20 times as many inputs.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

std::vector<std::string> fuzz_seeds();
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#ifndef HM_LIBFUZZER
extern "C" const char* __asan_default_options() { return "abort_on_error=1"; }
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1"; }

namespace howmany::fuzz {

inline uint64_t seed = 1, input = 0;

inline constexpr unsigned kSecondsPerInput = 30;  // more is a hang

inline void fail(int signal) {
  std::fprintf(stderr, "fuzz: failed on input %llu, reproduce with arguments: 1 %llu %llu\n",
               static_cast<unsigned long long>(input), static_cast<unsigned long long>(seed),
               static_cast<unsigned long long>(input));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Every failure becomes a signal: uncaught exceptions and sanitizers abort, and a hang raises
// SIGALRM.
inline void watch() {
  std::signal(SIGABRT, fail);
  std::signal(SIGALRM, fail);
#ifndef HM_SANITIZED
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(fault, fail);
#endif
}

inline void mutate(std::string& text, const std::vector<std::string>& seeds, std::mt19937_64& rng) {
  static constexpr uint8_t kEdges[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff, '0', '9', '-', '"'};
  const size_t at = rng() % (text.size() + 1);
  const size_t reach = rng() % 8 == 0 ? 512 : 8;
  const size_t span = 1 + rng() % reach;
  const auto edge = [&] { return static_cast<char>(kEdges[rng() % std::size(kEdges)]); };
  if (at == text.size()) {
    text.append(span, edge());
    return;
  }
  switch (rng() % 9) {
    case 0:
      text[at] = static_cast<char>(text[at] ^ (1 << rng() % 8));
      break;
    case 1:
      text[at] = edge();
      break;
    case 2:
      text[at] = static_cast<char>(text[at] + static_cast<int>(rng() % 17) - 8);
      break;
    case 3:
      text[at] = static_cast<char>(rng());
      break;
    case 4:
      text.replace(at, span, std::min(span, text.size() - at), edge());
      break;
    case 5:
      text.erase(at, span);
      break;
    case 6:
      text.insert(rng() % text.size(), text.substr(at, span));
      break;
    case 7:
      text.resize(at);
      break;
    default: {
      const std::string& other = seeds[rng() % seeds.size()];
      if (!other.empty()) text.replace(at, span, other.substr(rng() % other.size(), span));
    }
  }
}

inline std::string make_input(const std::vector<std::string>& seeds) {
  std::seed_seq numbers{seed, seed >> 32, input, input >> 32};
  std::mt19937_64 rng(numbers);
  std::string text = seeds[rng() % seeds.size()];
  for (uint64_t n = 1 + rng() % 8; n > 0; --n) mutate(text, seeds, rng);
  return text;
}

inline void write_seeds(const std::vector<std::string>& seeds, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (size_t i = 0; i < seeds.size(); ++i)
    std::ofstream(folder + "/seed" + std::to_string(i), std::ios::binary) << seeds[i];
}

}  // namespace howmany::fuzz

int main(int argc, char** argv) {
  namespace fuzz = howmany::fuzz;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::vector<std::string> seeds = fuzz_seeds();
  if (arguments.size() == 2 && arguments[0] == "--write") {
    fuzz::write_seeds(seeds, arguments[1]);
    return 0;
  }
  const auto number = [&](size_t i, uint64_t otherwise) {
    return i < arguments.size() ? std::stoull(arguments[i]) : otherwise;
  };
  const bool longer = arguments.size() < 2 && std::getenv("HOWMANY_NIGHTLY") != nullptr;
  const uint64_t count = number(0, 1000) * (longer ? 20 : 1), first = number(2, 0);
  fuzz::seed = number(1, 1);
  fuzz::watch();
  for (fuzz::input = first; fuzz::input < first + count; ++fuzz::input) {
    alarm(fuzz::kSecondsPerInput);
    const std::string text = fuzz::make_input(seeds);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  }
  std::printf("fuzz: %llu inputs of seed %llu\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(fuzz::seed));
}
#endif
