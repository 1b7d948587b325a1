// SPDX-License-Identifier: Apache-2.0
// A study: jobs that each measure one number of whole nodes, submitted from a login node. Its
// folder holds, for a job of 4 nodes:
//   study.json    the study, schema howmany.study/1
//   nodes-4.sh    the job script
//   nodes-4/      the results, a folder of `howmany gpus`
//   nodes-4.out   the output of the job
//   nodes-4.exit  the exit code of howmany, once it ended
// With --one-job there is one job for all numbers, named "all". Files are untrusted: read_study()
// throws InputError that names the place. Values only; not tied to any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/script/words.h"

namespace howmany::reports {

struct StudyJob {
  int nodes = 1;
  std::string id = {};         // digits; empty if it was not submitted
  std::string submitted = {};  // UTC time; empty likewise
};

struct Study {
  std::string folder;      // absolute path; not in the file
  std::string directory;   // absolute path of the folder in which the jobs run
  Words submit;            // "sbatch" and its options
  Words options, command;  // of `howmany gpus` in each job; after "--", perhaps empty
  bool one_job = false;
  std::vector<int> nodes;  // ascending
  std::vector<StudyJob> jobs;
};

// Returns the jobs that measure the numbers of nodes.
std::vector<StudyJob> jobs_for(const std::vector<int>& nodes, bool one_job);

// Returns "nodes-4", or "all".
std::string job_name(const Study& study, const StudyJob& job);
// Returns the path of the folder of a job's results. With an ending, such as ".sh", of its file.
std::string path_of(const Study& study, const StudyJob& job, const std::string& ending = "");

bool is_study(const std::string& folder);
nlohmann::ordered_json to_json(const Study& study);
void write_study(const Study& study);
Study read_study(const std::string& folder);

}  // namespace howmany::reports
