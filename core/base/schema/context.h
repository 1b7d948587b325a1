// SPDX-License-Identifier: Apache-2.0
// The keys of a file's context, which benches write and reports read. Values from benches are
// strings.
#pragma once

namespace howmany::context {

// The build.
inline constexpr const char* kCommit = "commit";
inline constexpr const char* kCompiler = "compiler";
inline constexpr const char* kCompilerFlags = "compiler_flags";
inline constexpr const char* kBuildType = "build_type";
inline constexpr const char* kOnednn = "onednn";
inline constexpr const char* kGloo = "gloo";
inline constexpr const char* kNvtx = "nvtx";

// The machine.
inline constexpr const char* kCpu = "cpu";
inline constexpr const char* kCoresAllowed = "cores_allowed";
inline constexpr const char* kCoresBecause = "cores_because";
inline constexpr const char* kGovernor = "governor";
inline constexpr const char* kMemoryBytes = "memory_bytes";
inline constexpr const char* kKernel = "kernel";
inline constexpr const char* kGpu = "gpu";
inline constexpr const char* kDriver = "driver";

// The launch.
inline constexpr const char* kWorld = "world";
inline constexpr const char* kLauncher = "launcher";
inline constexpr const char* kScriptEnvironment = "script_environment";  // set for your command

// A loader's data.
inline constexpr const char* kLoaderFormat = "loader_format";
inline constexpr const char* kLoaderFiles = "loader_files";
inline constexpr const char* kLoaderFilesUsed = "loader_files_used";
inline constexpr const char* kLoaderFilesBad = "loader_files_bad";
inline constexpr const char* kLoaderFirstBad = "loader_first_bad";
inline constexpr const char* kLoaderNotes = "loader_notes";
inline constexpr const char* kLoaderSampleBytes = "loader_sample_bytes";
inline constexpr const char* kLoaderLimits = "loader_limits";  // JSON, see limits.h

}  // namespace howmany::context
