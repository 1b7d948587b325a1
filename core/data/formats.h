// Opening whatever --data points at: the first format that knows the path opens it. One file in
// core/data/formats plus its line here.
//
//   OpenedData data = open_data("shards", {.images = {.size = 224}});
//   Loader loader(*data.dataset, {.global_batch = 64});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace howmany {

// One line per format: X(name, "what it looks like"). A folder of anything else is taken for class
// folders, so that comes last.
#define HM_DATA_FORMATS(X)                                                                     \
  X(tar_shards, "*.tar or a folder of them: KEY.jpg beside KEY.cls, as WebDataset packs them") \
  X(raw_tensors, "*.npy with labels in NAME.labels.npy, or a folder with x.npy and y.npy")     \
  X(tokens, "*.bin or *.u16 (16 bits a token), *.u32: a flat file of token ids")               \
  X(csv, "*.csv of numbers; the label is the column called label, or the last")                \
  X(image_folder, "a folder of class folders: CLASS/FILE.jpg")

struct DataOptions {
  ImageFolderOptions images = {};
  int64_t sequence = 1024;  // tokens of a sample
  int64_t vocabulary = 0;   // above 0: larger token ids are refused
};

struct OpenedData {
  DatasetPtr dataset;
  std::string format;
  const ImageDataset* images = nullptr;  // the dataset, when images are decoded
  std::vector<std::string> files;        // what is read
  int64_t classes = 0;                   // labels are below; 0: no labels of classes
  int64_t listed = 0;                    // samples before `most` left some out
  std::vector<BadImage> bad;             // left out
};

// Throws Error: nothing there, no format knows it, or what the format finds wrong.
OpenedData open_data(const std::string& path, const DataOptions& options);
// "*.csv of numbers ...; ..." for a help text.
std::string data_formats_help();

namespace formats {
// Nothing when the path is of another format.
#define X(name, what) std::optional<OpenedData> name(const std::string&, const DataOptions&);
HM_DATA_FORMATS(X)
#undef X
}  // namespace formats

}  // namespace howmany
