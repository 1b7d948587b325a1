// SPDX-License-Identifier: Apache-2.0
// The user's own command in `howmany gpus -- CMD`, and how it is measured. Values only, except that
// run_once() runs programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/nodes/nodes.h"
#include "reports/results/record.h"
#include "reports/results/scratch.h"
#include "reports/script/words.h"

namespace howmany::reports {

// The command of a request; `name` is empty if there is none.
struct Script {
  std::string name;               // "train.py": the only part that results show
  Words words;                    // {n}: the number of ranks
  Words one = {};                 // on one device, without a launcher; empty: `words`
  Words across = {};              // what each node runs if there are several; empty: `words`
  int64_t samples_per_step = 0;   // per rank; 0: as the batches show
  bool alone = false;             // it trains on one device, however it is started
  bool one_rank = false;          // `words` with one rank differ from `one`: a row of their own
  int own_ranks = 0;              // it starts this number of ranks itself, whatever the devices
  bool try_ddp = false;           // put DistributedDataParallel around its model
  bool tries = false;             // changes that may help, see reports/why/help.h
  bool in_copy = false;           // runs in a copy of the current folder
  bool keep_private = false;      // `name` is "script", and errors quote none of its messages
  std::string rate;               // pattern of the lines with its rate; empty: the hook measures
  std::string why_alone = {};     // the reason if it fails with several ranks
  std::string why_one_node = {};  // the reason if it fails on several nodes
  bool has_group = false;         // it can use DistributedDataParallel, yet it is `alone`
  double start_timeout = 120;     // seconds until its first step
  double start_seconds = 0;       // until its first step, as seen; 0: unknown

  // kSwept: {n} takes the place of a launcher's number.
  enum class Count { kSwept, kAsGiven };

  bool given() const { return !name.empty(); }
  bool has_count() const { return reports::has_count(words) || has_nodes(words); }
};

// Returns the script of a command line. If the count is swept, {n} takes the place of a launcher's
// number, `one` is the command of a rank, and `*notice` says what was changed. Throws InputError if
// the hook cannot work there (python -c, -E or -I).
Script script_from(const Words& words, std::string* notice,
                   Script::Count count = Script::Count::kSwept);

// Returns the words with {nodes}, {per_node} and {head} replaced for `ranks` ranks on `count`
// nodes. {n} and {port} are left to script_bench.
Words filled(const Words& words, const Nodes& nodes, int count, int ranks);
// Returns the words that start the script on several nodes.
Words on_nodes(const Script& script, const Nodes& nodes, int count, int ranks);

// Keeps the name and the messages of the script out of all results (--private).
void make_private(Script& script);

// Returns the flags of script_bench that the user chose.
Words flags_of(const Script& script);
// Returns the program and the options that every run of script_bench has: timed steps of `seconds`,
// and `timeout` seconds for the rest of the run. More options, "--" and the words follow.
Words bench_words(const Script& script, double seconds, double timeout,
                  const BenchScratch& scratch);
// Runs the script once on one device, for `seconds` of timed steps, with more `flags` of
// script_bench. With more than one rank it is one of `ranks`, with collectives that take no time
// (torch_hook/rehearsal.py). Results are in `scratch`. Throws std::runtime_error with the reason if
// no step was measured, and InputError if script_bench refuses a flag.
void run_once(const Script& script, const Words& flags, int ranks, double seconds,
              const BenchScratch& scratch);

// Returns a sentence with the variables that were set for the command; empty if there are none.
std::string environment_note(const Summary& summary);

}  // namespace howmany::reports
