// SPDX-License-Identifier: Apache-2.0
// The data that loader_bench loads: a folder of images, synthetic JPEGs, or samples in memory with
// a given cost. A LoaderData may be read by any thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/base/temporary.h"
#include "core/data/dataset.h"
#include "core/data/image_folder.h"

namespace howmany::benches {

struct LoaderDataOptions {
  // A path for open_data(), or:
  //   "synthetic": synthetic JPEGs
  //   "null": samples without cost
  //   "cost:200": 200 us of arithmetic per sample
  //   "wait:200": 200 us of sleep per sample, as for storage
  std::string data = "synthetic";
  int64_t size = 224;                               // image samples are [size,size,3] f32
  int64_t sequence = 1024;                          // tokens of a sample
  int64_t most = 1024;                              // maximum number of files used, evenly drawn
  int64_t images = 256, width = 500, height = 375;  // of synthetic JPEGs
};

class LoaderData {
 public:
  // Throws std::invalid_argument if the data cannot be used.
  explicit LoaderData(const LoaderDataOptions& options);
  ~LoaderData();  // removes the synthetic files
  LoaderData(const LoaderData&) = delete;
  LoaderData& operator=(const LoaderData&) = delete;

  const Dataset& samples() const { return *samples_; }
  // The same samples repeated, so that an epoch does not end during a measurement.
  const Dataset& endless() const { return *endless_; }
  const std::string& name() const { return name_; }      // "images", "painted" (synthetic), ...
  const std::string& format() const { return format_; }  // of open_data(); "" if there are no files
  // The places of the samples in files. Large files are used up to the first GiB.
  const std::vector<FilePart>& parts() const { return parts_; }
  int64_t listed() const { return listed_; }                 // total number of samples
  const std::vector<BadImage>& bad() const { return bad_; }  // among the files used
  const std::vector<std::string>& notes() const { return notes_; }
  StageTimes stages() const { return images_ ? images_->stages() : StageTimes{}; }
  int64_t sample_bytes() const;  // x and y

 private:
  void open(const std::string& root, const LoaderDataOptions& options);
  int64_t take_parts(const Dataset& opened, const std::vector<std::string>& files);

  std::string name_, painted_, format_;
  std::optional<FolderGuard> guard_;  // of painted_
  std::vector<FilePart> parts_;
  int64_t listed_ = 0;
  std::vector<BadImage> bad_;
  std::vector<std::string> notes_;
  DatasetPtr opened_;  // only if a part of it is used
  DatasetPtr samples_, endless_;
  const ImageDataset* images_ = nullptr;
};

// Reports on stderr, every few seconds, the progress of opening many files: "photos: 120000 files
// listed".
FileProgress tell_files(const std::string& folder);

// Keeps a core busy for this time, regardless of how many threads share the core.
void burn(std::chrono::microseconds cost);

}  // namespace howmany::benches
