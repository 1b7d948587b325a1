// SPDX-License-Identifier: Apache-2.0
// The check of the first step, if cuBLASLt's algorithms differ in their sums. Uses fake GPUs.
#include "benches/common/verify.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <random>

#include "core/backends/cuda/blas/cublaslt.h"
#include "core/gpu/gpu.h"
#include "parallel/launch/launch.h"
#include "tests/fakes/fake_cublaslt.h"
#include "tests/support/tensors.h"

namespace howmany::benches {
namespace {

FakeCublasLt* fake() {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const found = library ? dlsym(library, "hm_fake_cublaslt") : nullptr;
  return found ? reinterpret_cast<FakeCublasLt* (*)()>(found)() : nullptr;
}

// Sums differ by 3e-4, three times the tolerance of f32. The first algorithm that works is not the
// fastest.
class Verify : public testing::Test {
 protected:
  void SetUp() override {
    if (fake() == nullptr) GTEST_SKIP() << "no fake GPU";
    fake()->apart = 3e-4;
  }
  void TearDown() override {
    if (fake() == nullptr) return;
    fake()->apart = 0;
    fake()->right_rows = 0;
  }

  // Its products are large enough to be measured. The width is random, so that most are new to the
  // process.
  Workload work(const std::string& mode, int gpus) {
    const int width = std::uniform_int_distribution(64, 300)(random);
    Workload w;
    w.model = "mlp:sizes=" + std::to_string(width) + "-128-4";
    w.mode = mode;
    for (int i = 0; i < gpus; ++i) w.devices.push_back({DeviceType::cuda, i});
    w.global_batch = 128 * gpus;
    w.steady = true;
    return w;
  }
  std::mt19937_64 random{testing_support::fresh_seed()};

  static Workload in_bf16(const std::string& model, int64_t batch) {
    Workload w;
    w.model = model;
    w.devices = {{DeviceType::cuda, 0}};
    w.global_batch = batch;
    w.precision = Precision::bf16;
    return w;
  }

  static void verify(const Workload& w) {
    const DatasetPtr data = open_dataset(w);
    launch_threads(w.ranks(), [&](Comm& comm) {
      const PrecisionScope how(w.precision);
      const Device device = w.devices_of(comm.rank()).front();
      Trainer trainer(w, *data, comm, device);
      verify_first_step(w, *data, trainer, comm, device);
    });
  }
};

TEST_F(Verify, ComparesStepsOfTheSameAlgorithmsOnOneGpu) {
  EXPECT_NO_THROW(verify(work("single", 1)));
}

TEST_F(Verify, StillRefusesWrongProducts) {
  fake()->apart = 1e-2;  // also from the reference
  EXPECT_THROW(verify(work("single", 1)), WrongData);
}

TEST_F(Verify, RefusesProductsThatAreWrongInFullTiles) {
  fake()->right_rows = 256;
  EXPECT_THROW(verify(work("single", 1)), WrongData);
}

// Its batch norm has few values, so that bf16 alone changes gradients by 0.4 of their size.
TEST_F(Verify, AcceptsModelsWhoseGradientsBf16Moves) {
  EXPECT_NO_THROW(verify(in_bf16("resnet18:image=32,width=8", 4)));
}

TEST_F(Verify, RefusesWrongProductsInBf16) {
  EXPECT_NO_THROW(verify(in_bf16("mlp:sizes=128-128-4", 128)));
  fake()->apart = 0.3;
  EXPECT_THROW(verify(in_bf16("mlp:sizes=192-128-4", 128)), WrongData);
}

TEST_F(Verify, ComparesStepsOfTheSameAlgorithmsOnTwoGpus) {
  EXPECT_NO_THROW(verify(work("ddp", 2)));
  EXPECT_NO_THROW(verify(work("data_parallel", 2)));
}

}  // namespace
}  // namespace howmany::benches
