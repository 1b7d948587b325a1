// The command-line flags that bench programs parse and reports pass to them.
#pragma once

namespace howmany::flag {

// In order of their names.
inline constexpr const char* kAs = "--as";
inline constexpr const char* kBackend = "--backend";
inline constexpr const char* kBatch = "--batch";
inline constexpr const char* kBatchPerDevice = "--batch-per-device";
inline constexpr const char* kBudgetSeconds = "--budget-seconds";
inline constexpr const char* kCache = "--cache";
inline constexpr const char* kCeilings = "--ceilings";
inline constexpr const char* kCoresPerDevice = "--cores-per-device";
inline constexpr const char* kCrowded = "--crowded";
inline constexpr const char* kData = "--data";
inline constexpr const char* kDecode = "--decode";
inline constexpr const char* kDescribeOptions = "--describe-options";
inline constexpr const char* kDevice = "--device";
inline constexpr const char* kDeviceCount = "--device-count";
inline constexpr const char* kDevices = "--devices";
inline constexpr const char* kDtype = "--dtype";
inline constexpr const char* kGlobalBatch = "--global-batch";
inline constexpr const char* kImageSize = "--image-size";
inline constexpr const char* kInPlace = "--in-place";
inline constexpr const char* kInTurn = "--in-turn";
inline constexpr const char* kJson = "--json";
inline constexpr const char* kKernels = "--kernels";
inline constexpr const char* kLeastCalls = "--least-calls";
inline constexpr const char* kLimits = "--limits";
inline constexpr const char* kList = "--list";
inline constexpr const char* kMaxBytes = "--max-bytes";
inline constexpr const char* kMinBytes = "--min-bytes";
inline constexpr const char* kMode = "--mode";
inline constexpr const char* kModel = "--model";
inline constexpr const char* kMoreAloneUs = "--more-alone-us";
inline constexpr const char* kMoreCrowdedUs = "--more-crowded-us";
inline constexpr const char* kMoreUs = "--more-us";
inline constexpr const char* kOps = "--ops";
inline constexpr const char* kOversubscribe = "--oversubscribe";
inline constexpr const char* kPrefetch = "--prefetch";
inline constexpr const char* kProbe = "--probe";
inline constexpr const char* kProfile = "--profile";
inline constexpr const char* kRanks = "--ranks";
inline constexpr const char* kRounds = "--rounds";
inline constexpr const char* kSamples = "--samples";
inline constexpr const char* kSamplesPerSecond = "--samples-per-second";
inline constexpr const char* kSeed = "--seed";
inline constexpr const char* kSizeFactor = "--size-factor";
inline constexpr const char* kSyncBatchnorm = "--sync-batchnorm";
inline constexpr const char* kTimeout = "--timeout";
inline constexpr const char* kTo = "--to";
inline constexpr const char* kWorkerStart = "--worker-start";
inline constexpr const char* kWorkers = "--workers";

}  // namespace howmany::flag
