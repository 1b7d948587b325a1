// SPDX-License-Identifier: Apache-2.0
#include "reports/submit/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/text/files.h"
#include "core/base/text/json.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStudySchema = "howmany.study/1";
constexpr int64_t kMaxStudyNodes = 4096;
constexpr size_t kMaxIdDigits = 18;

std::string study_path(const std::string& folder) { return folder + "/study.json"; }

std::string id_from(const JsonNode& node) {
  if (node.is_null()) return "";
  const std::string id = node.string();
  if (id.empty() || id.size() > kMaxIdDigits || id.find_first_not_of("0123456789") != id.npos)
    node.fail("expected the number of a job");
  return id;
}

std::vector<int> nodes_from(const JsonNode& node) {
  std::vector<int> nodes;
  for (const JsonNode& item : node.items()) {
    nodes.push_back(static_cast<int>(item.integer_between(1, kMaxStudyNodes)));
    if (nodes.size() > 1 && nodes.back() <= nodes[nodes.size() - 2]) item.fail("is not ascending");
  }
  if (nodes.empty()) node.fail("is empty");
  return nodes;
}

// The numbers of nodes decide which jobs there are.
std::vector<StudyJob> jobs_from(const JsonNode& node, const Study& study) {
  std::vector<StudyJob> jobs = jobs_for(study.nodes, study.one_job);
  const std::vector<JsonNode> items = node.items();
  if (items.size() != jobs.size()) node.fail(fmt::format("expected {} jobs", jobs.size()));
  for (size_t i = 0; i < jobs.size(); ++i) {
    StudyJob& job = jobs[i];
    if (items[i].at("nodes").integer() != job.nodes)
      items[i].at("nodes").fail(fmt::format("expected {}", job.nodes));
    const std::string script = job_name(study, job) + ".sh";
    if (items[i].at("script").string() != script)
      items[i].at("script").fail(fmt::format("expected \"{}\"", script));
    job.id = id_from(items[i].at("job_id"));
    if (const auto time = items[i].find("submitted")) job.submitted = time->string();
  }
  return jobs;
}

nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

}  // namespace

std::vector<StudyJob> jobs_for(const std::vector<int>& nodes, bool one_job) {
  if (one_job) return {{.nodes = nodes.back()}};
  std::vector<StudyJob> jobs;
  for (const int count : nodes) jobs.push_back({.nodes = count});
  return jobs;
}

std::string job_name(const Study& study, const StudyJob& job) {
  return study.one_job ? "all" : fmt::format("nodes-{}", job.nodes);
}

std::string path_of(const Study& study, const StudyJob& job, const std::string& ending) {
  return fmt::format("{}/{}{}", study.folder, job_name(study, job), ending);
}

bool is_study(const std::string& folder) {
  return !folder.empty() && fs::exists(study_path(folder));
}

nlohmann::ordered_json to_json(const Study& study) {
  nlohmann::ordered_json jobs = nlohmann::ordered_json::array();
  for (const StudyJob& job : study.jobs)
    jobs.push_back({{"nodes", job.nodes},
                    {"script", job_name(study, job) + ".sh"},
                    {"job_id", text_or_null(job.id)},
                    {"submitted", text_or_null(job.submitted)}});
  return {{"schema", kStudySchema},   {"directory", study.directory},
          {"submit", study.submit},   {"options", study.options},
          {"command", study.command}, {"nodes", study.nodes},
          {"one_job", study.one_job}, {"jobs", jobs}};
}

void write_study(const Study& study) {
  write_text(study_path(study.folder), dump_json(to_json(study)));
}

Study read_study(const std::string& folder) {
  const std::string path = study_path(folder);
  const nlohmann::json json = parse_json(read_text(path), path);
  const JsonNode root(json, path);
  if (root.at("schema").string() != kStudySchema)
    root.at("schema").fail(fmt::format("is not {}", kStudySchema));
  Study study;
  study.folder = fs::absolute(folder).lexically_normal().string();
  study.directory = root.at("directory").string();
  study.submit = root.at("submit").strings();
  study.options = root.at("options").strings();
  study.command = root.at("command").strings();
  study.nodes = nodes_from(root.at("nodes"));
  study.one_job = root.at("one_job").boolean();
  study.jobs = jobs_from(root.at("jobs"), study);
  return study;
}

}  // namespace howmany::reports
