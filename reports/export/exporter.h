// SPDX-License-Identifier: Apache-2.0
// Writes an answer for other systems (howmany report DIR --export KIND:PATH). To add a kind, define
// export_NAME in a file of writers/ and add a line here. One thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/export/feed.h"

// X(name, purpose)
#define HM_EXPORTS(X)                                                              \
  X(openmetrics, "a text file for node_exporter's textfile folder or OpenMetrics") \
  X(mlflow, "a run in a local store of MLflow, in your Python")                    \
  X(wandb, "an offline run of W&B, in your Python")

namespace howmany::reports {

struct ExportTarget {
  std::string path;    // never empty
  std::string python;  // the user's, for its libraries; empty: the active one
};

struct Exporter {
  const char* name;
  const char* what;
  // Writes the feeds. Returns a line for people: the file, or the command that opens it. Throws
  // InputError if that fails.
  std::string (*write)(const std::vector<Feed>& feeds, const ExportTarget& target);
};

std::span<const Exporter> exporters();

// "mlflow:PATH"
struct ExportRequest {
  const Exporter* exporter;
  std::string path;
};
// Throws InputError if the kind is unknown or the path is missing.
ExportRequest parse_export(const std::string& text);

#define HM_DECLARE_EXPORT(name, what) \
  std::string export_##name(const std::vector<Feed>& feeds, const ExportTarget& target);
HM_EXPORTS(HM_DECLARE_EXPORT)
#undef HM_DECLARE_EXPORT

// The text that export_openmetrics() writes.
std::string openmetrics_text(const std::vector<Feed>& feeds);

}  // namespace howmany::reports
