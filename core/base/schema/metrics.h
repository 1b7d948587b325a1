// SPDX-License-Identifier: Apache-2.0
// The names of the metrics, which benches write as counters of Google Benchmark and reports read.
// The suffix of a name is its unit: _s seconds, _bytes, _per_s, _fraction from 0 to 1.
#pragma once

namespace howmany::metric {

// Every timed case.
inline constexpr const char* kMinS = "min_s";
inline constexpr const char* kMedianS = "median_s";
inline constexpr const char* kP95S = "p95_s";
inline constexpr const char* kCv = "cv";
inline constexpr const char* kSamplesPerS = "samples_per_s";
inline constexpr const char* kFlopPerS = "flop_per_s";
inline constexpr const char* kBytesPerS = "bytes_per_s";
inline constexpr const char* kSamples = "samples";  // timed iterations
inline constexpr const char* kSkipped = "skipped";  // 1 if the case was skipped

// Collectives.
inline constexpr const char* kAlgbwBytesPerS = "algbw_bytes_per_s";
inline constexpr const char* kBusbwBytesPerS = "busbw_bytes_per_s";
inline constexpr const char* kPipelinedS = "pipelined_s";
inline constexpr const char* kCoreS = "core_s";  // CPU time of a rank per call
inline constexpr const char* kOfOthers = "of_others";
inline constexpr const char* kSlowestRank = "slowest_rank";
inline constexpr const char* kCommAloneS = "comm_alone_s";
inline constexpr const char* kCommBesideS = "comm_beside_s";
inline constexpr const char* kGemmAloneS = "gemm_alone_s";
inline constexpr const char* kGemmBesideS = "gemm_beside_s";
inline constexpr const char* kHiddenFraction = "hidden_fraction";

// Training steps.
inline constexpr const char* kDataWaitFraction = "data_wait_fraction";
inline constexpr const char* kBubbleFraction = "bubble_fraction";
inline constexpr const char* kTheoreticalBubbleFraction = "theoretical_bubble_fraction";
inline constexpr const char* kExposedCommunicationS = "exposed_communication_s";
inline constexpr const char* kFirstStepS = "first_step_s";
inline constexpr const char* kRanks = "ranks";
inline constexpr const char* kStragglerRank = "straggler_rank";
inline constexpr const char* kStragglerExtraS = "straggler_extra_s";
inline constexpr const char* kPeakBytesPerDevice = "peak_bytes_per_device";

// Whole runs of a command.
inline constexpr const char* kGpuUtilisationFraction = "gpu_utilisation_fraction";
inline constexpr const char* kGpuMemoryBytes = "gpu_memory_bytes";
inline constexpr const char* kMfuFraction = "mfu_fraction";

// Training steps of a user's own script.
inline constexpr const char* kBackwardFraction = "backward_fraction";
// Work that recurs between steps: rollouts, validation, logging, checkpoints.
inline constexpr const char* kBetweenStepsFraction = "between_steps_fraction";
inline constexpr const char* kCycles = "cycles";  // whole ones in the timed window
inline constexpr const char* kOptimizerFraction = "optimizer_fraction";
inline constexpr const char* kGradientBytes = "gradient_bytes";
inline constexpr const char* kOptimizerBytes = "optimizer_bytes";  // its state
inline constexpr const char* kParameterBytes = "parameter_bytes";  // and buffers
inline constexpr const char* kReservedBytes = "reserved_bytes";    // by the allocator
inline constexpr const char* kWarmupLines = "warmup_lines";
inline constexpr const char* kWallS = "wall_s";    // of a whole run of the command
inline constexpr const char* kStartS = "start_s";  // of it, outside of training steps
inline constexpr const char* kWarmupSteps = "warmup_steps";
// Optimized parameters within DistributedDataParallel, of --try-ddp.
inline constexpr const char* kWrappedFraction = "wrapped_fraction";

// Profiles of training steps.
inline constexpr const char* kProfileCostFraction = "profile_cost_fraction";
inline constexpr const char* kProfileDroppedSpans = "profile_dropped_spans";
inline constexpr const char* kProfileGpuLostRecords = "profile_gpu_lost_records";
inline constexpr const char* kProfileGpuRefusedRecords = "profile_gpu_refused_records";

// Loaders.
inline constexpr const char* kStallFraction = "stall_fraction";
inline constexpr const char* kAloneSamplesPerS = "alone_samples_per_s";  // without training
inline constexpr const char* kFirstBatchS = "first_batch_s";
inline constexpr const char* kLatencyP95S = "latency_p95_s";
inline constexpr const char* kLatencyP99S = "latency_p99_s";
inline constexpr const char* kCpuSPerSample = "cpu_s_per_sample";
inline constexpr const char* kBytesPerWorker = "bytes_per_worker";
inline constexpr const char* kBusyElsewhereFraction = "busy_elsewhere_fraction";

// Stages of a loader.
inline constexpr const char* kReadS = "read_s";
inline constexpr const char* kDecodeS = "decode_s";
inline constexpr const char* kTransformS = "transform_s";

}  // namespace howmany::metric
