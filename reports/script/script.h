// SPDX-License-Identifier: Apache-2.0
// The user's own command in `howmany gpus -- CMD`, and how it is started with n ranks. Values only,
// except that run_once() runs programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/results/record.h"
#include "reports/results/scratch.h"

namespace howmany::reports {

// The command of a request; `name` is empty if there is none.
struct Script {
  std::string name;                // "train.py": the only part that results show
  std::vector<std::string> words;  // {n}: the number of ranks
  int64_t samples_per_step = 0;    // per rank; 0: as the batches show
  bool alone = false;              // it trains on one device, however it is started
  bool try_ddp = false;            // put DistributedDataParallel around its model
  bool in_copy = false;            // runs in a copy of the current folder
  bool keep_private = false;       // `name` is "script", and errors quote none of its messages
  std::string rate;                // pattern of the lines with its rate; empty: the hook measures

  // kSwept: {n} takes the place of a launcher's number.
  enum class Count { kSwept, kAsGiven };

  bool given() const { return !name.empty(); }
  bool has_count() const;  // a word contains {n}
};

// Returns the script of a command line. If the count is swept, a number where {n} belongs is
// replaced by {n}, and a launcher without a number gets one; `*notice` then says so. Knows
// torchrun, accelerate, deepspeed, mpirun and srun. Throws InputError if the hook cannot work there
// (python -c, -E or -I).
Script script_from(const std::vector<std::string>& words, std::string* notice,
                   Script::Count count = Script::Count::kSwept);

// Keeps the name and the messages of the script out of all results (--private).
void make_private(Script& script);

// Returns the Python that a command starts: its first word, or the one beside a launcher such as
// torchrun. Empty if there is none.
std::string python_of(const std::vector<std::string>& words);

// Returns the words that start `python train.py ARGS` by torchrun with {n} ranks.
std::vector<std::string> under_torchrun(const std::vector<std::string>& words);

// Returns the flags of script_bench that the user chose.
std::vector<std::string> flags_of(const Script& script);
// Returns the program and the options that every run of script_bench has: timed steps of `seconds`,
// and `timeout` seconds for the rest of the run. More options, "--" and the words follow.
std::vector<std::string> bench_words(const Script& script, double seconds, double timeout,
                                     const BenchScratch& scratch);
// Runs the script once on one device, for `seconds` of timed steps, with more `flags` of
// script_bench. With more than one rank it is one of `ranks`, with collectives that take no time
// (torch_hook/rehearsal.py). Results are in `scratch`. Throws std::runtime_error with the reason if
// no step was measured, and InputError if script_bench refuses a flag.
void run_once(const Script& script, const std::vector<std::string>& flags, int ranks,
              double seconds, const BenchScratch& scratch);

// Returns a sentence with the variables that were set for the command; empty if there are none.
std::string environment_note(const Summary& summary);

}  // namespace howmany::reports
