// SPDX-License-Identifier: Apache-2.0
#include "reports/script/script.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <iterator>
#include <sstream>

#include "reports/gpus/plan.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

Script script_of(const Words& words, std::string* notice = nullptr) {
  std::string unused;
  return script_from(words, notice == nullptr ? &unused : notice);
}

TEST(Script, IsNamedAfterItsFileOrModule) {
  EXPECT_EQ(script_of({"python3.11", "/data/secret/train.py", "--x"}).name, "train.py");
  EXPECT_EQ(script_of({"python", "-m", "pkg.train", "--key=1"}).name, "pkg.train");
  EXPECT_EQ(script_of({"python", "-m", "torch.distributed.run", "a/b.py"}).name, "b.py");
  EXPECT_EQ(script_of({"torchrun", "--module", "pkg.train"}).name, "pkg.train");
  EXPECT_EQ(script_of({"/opt/bin/trainer", "{n}"}).name, "trainer");
}

struct Sweep {
  std::string given, swept, plain;
};

Words split(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

TEST(Script, TheNumberOfALauncherIsReplacedInItsOwnWordsOnly) {
  const std::vector<Sweep> kSweeps = {
      {"torchrun --nproc_per_node=4 t.py -n 3",
       "torchrun --local-addr 127.0.0.1 --nproc_per_node={n} t.py -n 3", "python t.py -n 3"},
      {"torchrun --nproc-per-node=gpu t.py",
       "torchrun --local-addr 127.0.0.1 --nproc-per-node={n} t.py", "python t.py"},
      {"torchrun --nnodes=1 --standalone t.py --nproc-per-node 7",
       "torchrun --local-addr 127.0.0.1 --nproc-per-node {n} --nnodes=1 --standalone t.py "
       "--nproc-per-node 7",
       "python t.py --nproc-per-node 7"},
      {"torchrun --nproc-per-node 2 -m pkg.train --x",
       "torchrun --local-addr 127.0.0.1 --nproc-per-node {n} -m pkg.train --x",
       "python -m pkg.train --x"},
      {"torchrun --nproc-per-node 2 --no-python ./run.sh a",
       "torchrun --local-addr 127.0.0.1 --nproc-per-node {n} --no-python ./run.sh a", "./run.sh a"},
      {"python -m torch.distributed.run t.py",
       "python -m torch.distributed.run --local-addr 127.0.0.1 --nproc-per-node {n} t.py",
       "python t.py"},
      {"env A=1 nice -n 5 torchrun --nproc-per-node 8 t.py",
       "env A=1 nice -n 5 torchrun --local-addr 127.0.0.1 --nproc-per-node {n} t.py",
       "env A=1 nice -n 5 python t.py"},
      {"uv run accelerate launch --num_processes 4 --mixed_precision bf16 t.py",
       "uv run accelerate launch --main_process_ip 127.0.0.1 --num_processes {n} --mixed_precision "
       "bf16 t.py",
       "uv run python t.py"},
      {"accelerate launch t.py --num_processes 16",
       "accelerate launch --main_process_ip 127.0.0.1 --num_processes {n} t.py --num_processes 16",
       "python t.py --num_processes 16"},
      {"accelerate launch --cpu t.py",
       "accelerate launch --main_process_ip 127.0.0.1 --num_processes {n} --cpu t.py",
       "python t.py"},
      {"torchrun --master-port 29501 t.py",
       "torchrun --local-addr 127.0.0.1 --nproc-per-node {n} --master-port 29501 t.py",
       "python t.py"},
      {"torchrun --rdzv-endpoint=h:1 --nproc-per-node 2 t.py",
       "torchrun --rdzv-endpoint=h:1 --nproc-per-node {n} t.py", "python t.py"},
      {"deepspeed --num_gpus=4 t.py --deepspeed ds.json",
       "deepspeed --num_gpus={n} t.py --deepspeed ds.json", "python t.py --deepspeed ds.json"},
      {"fabric run --devices=2 --accelerator cpu t.py",
       "fabric run --main-address 127.0.0.1 --devices={n} --accelerator cpu t.py", "python t.py"},
      {"mpirun -np 8 --mca btl self,vader -x A python t.py",
       "mpirun -np {n} --mca btl self,vader -x A python t.py", "python t.py"},
      {"srun -n4 -N1 --exclusive python t.py -n 64", "srun -n{n} -N1 --exclusive python t.py -n 64",
       "python t.py -n 64"},
      {"srun python t.py -n 64", "srun -n {n} python t.py -n 64", "python t.py -n 64"},
      {"srun --ntasks=2 ./t", "srun --ntasks={n} ./t", "./t"},
  };
  for (const Sweep& one : kSweeps) {
    std::string notice;
    const Script script = script_of(split(one.given), &notice);
    EXPECT_EQ(fmt::format("{}", fmt::join(script.words, " ")), one.swept);
    EXPECT_EQ(fmt::format("{}", fmt::join(script.one, " ")), one.plain);
    EXPECT_NE(notice, "") << one.given;
  }
}

TEST(Script, MoreThanOneNodeIsRefused) {
  for (const char* const words :
       {"torchrun --nnodes=2 --nproc-per-node=4 t.py", "torchrun --nnodes 1:4 t.py",
        "srun -N 2 -n 8 python t.py", "srun -N4 python t.py", "deepspeed --num_nodes 2 t.py"})
    EXPECT_THROW(script_of(split(words)), InputError) << words;
}

TEST(Script, LeavesAGivenCountAndPlainPythonAsTheyAre) {
  for (const char* const words :
       {"srun -n {n} python t.py", "python t.py -n 4", "python spawn.py --gpus {n}",
        "bash train.sh --nproc-per-node 4", "nice python -W ignore t.py"}) {
    std::string notice;
    EXPECT_EQ(script_of(split(words), &notice).words, split(words));
    EXPECT_EQ(notice, "") << words;
  }
}

TEST(Script, IsStartedByTorchrunAsItIs) {
  const Words start = under_torchrun(split("python -O -m pkg.train -m"), "/v/bin/python3");
  EXPECT_EQ(start.front(), "/v/bin/python3");
  EXPECT_THAT(Words(start.end() - 7, start.end()),
              ElementsAre("--no-python", "--", "python", "-O", "-m", "pkg.train", "-m"));
  EXPECT_EQ(under_torchrun({"/v/bin/python3", "t.py"}).front(), "/v/bin/python3");
  EXPECT_THROW(under_torchrun({"/no/julia", "t.jl"}), InputError);
}

TEST(Script, RefusesAPythonThatIgnoresTheHook) {
  for (const char* flag : {"-c", "-E", "-I"}) {
    EXPECT_THROW(script_of({"python", flag, "t.py"}), InputError) << flag;
    EXPECT_THROW(script_of({"nice", "python3", "-W", "ignore", flag, "t.py"}), InputError) << flag;
  }
  EXPECT_THROW(script_of({}), InputError);
}

TEST(Script, ItsWordsAreOnlyInThePlan) {
  Request request;
  request.script = script_of({"python", "t.py", "--token=SECRET", "{n}"});
  EXPECT_EQ(to_json(request).dump().find("SECRET"), std::string::npos);
}

}  // namespace
}  // namespace howmany::reports
