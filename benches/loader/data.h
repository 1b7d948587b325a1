// What loader_bench loads: a folder of images, JPEGs painted for the occasion, or samples in memory
// with a set cost. A LoaderData may be read by any thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace howmany::benches {

struct LoaderDataOptions {
  std::string data = "synthetic";  // what open_data opens; "synthetic": painted JPEGs; "null";
                                   // "cost:200": 200 us of arithmetic a sample;
                                   // "wait:200": of waiting, as for storage
  int64_t size = 224;              // image samples are [size,size,3] f32
  int64_t sequence = 1024;         // tokens of a sample
  int64_t most = 1024;             // files looked at, evenly drawn
  int64_t images = 256, width = 500, height = 375;  // of painted JPEGs
};

class LoaderData {
 public:
  // Throws std::invalid_argument for a folder or a word that cannot be used.
  explicit LoaderData(const LoaderDataOptions& options);
  ~LoaderData();  // removes painted files
  LoaderData(const LoaderData&) = delete;
  LoaderData& operator=(const LoaderData&) = delete;

  const Dataset& samples() const { return *samples_; }
  // The same samples over and over, so that an epoch lasts as long as a measurement.
  const Dataset& endless() const { return *endless_; }
  const std::string& name() const { return name_; }      // "images", "painted", "null", ...
  const std::string& format() const { return format_; }  // of open_data; "" when not of files
  const std::vector<std::string>& files() const { return files_; }
  // The files are the samples, so that reading files tells what reading samples takes.
  bool a_file_each() const { return format_ == "image_folder"; }
  int64_t listed() const { return listed_; }                 // samples there are in all
  const std::vector<BadImage>& bad() const { return bad_; }  // of those looked at
  StageTimes stages() const { return images_ ? images_->stages() : StageTimes{}; }
  int64_t sample_bytes() const;  // x and y

 private:
  void open(const std::string& root, const LoaderDataOptions& options);

  std::string name_, painted_, format_;
  std::vector<std::string> files_;
  int64_t listed_ = 0;
  std::vector<BadImage> bad_;
  DatasetPtr samples_, endless_;
  const ImageDataset* images_ = nullptr;
};

// Says on stderr, every few seconds, how far opening many files has come: "photos: 120000 files
// listed".
FileProgress tell_files(const std::string& folder);

// Keeps a core busy for so long, however many threads share it.
void burn(std::chrono::microseconds cost);

// Samples that cost nothing to make: nothing is written.
DatasetPtr null_dataset(const SampleSpec& spec, int64_t size);

}  // namespace howmany::benches
