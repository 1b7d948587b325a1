#include "benches/tools/devices_flags.h"

#include <CLI/CLI.hpp>

#include "benches/common/program.h"
#include "core/base/schema/flags.h"

namespace howmany::benches {
namespace {

constexpr const char* kDevicesExamples = R"(Examples:
  howmany devices           what is here, for people
  howmany devices --json    the same for programs: .cpu_devices.default_count, .gpus, ...)";

}  // namespace

DevicesFlags parse_devices_flags(int argc, char** argv) {
  DevicesFlags flags;
  CLI::App app(
      "What is here: cores and which limit decides, memory, GPUs, and what of this build works.",
      "howmany devices");
  app.footer(kDevicesExamples);
  app.add_flag(flag::kJson, flags.json, "print JSON (schema howmany.devices/1) instead of text");
  app.add_option(flag::kProbe, flags.probe)->group("");  // internal; see probes.h
  app.add_option("--probe-file", flags.probe_file)->group("");
  parse(app, argc, argv);
  return flags;
}

}  // namespace howmany::benches
