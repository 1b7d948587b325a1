// SPDX-License-Identifier: Apache-2.0
// Opens the path of --data by the first format that accepts it. A new format is one file in
// core/data/formats and one line here.
//
//   OpenedData data = open_data("shards", {.images = {.size = 224}});
//   Loader loader(*data.dataset, {.global_batch = 64});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/image_folder.h"

namespace howmany {

// One line per format: X(name, "description"). image_folder accepts every folder, so it is last.
#define HM_DATA_FORMATS(X)                                                                    \
  X(tar_shards,                                                                               \
    "*.tar or a folder of them: KEY.jpg and its class in KEY.cls or KEY.json, as "            \
    "WebDataset packs them")                                                                  \
  X(raw_tensors, "*.npy with labels in NAME.labels.npy, or a folder with x.npy and y.npy")    \
  X(tokens, "*.bin (of llm.c, or 16 bits a token), *.u16 or *.u32: a flat file of token ids") \
  X(csv, "*.csv of numbers; the label is the column called label, or the last")               \
  X(image_folder, "a folder of class folders: CLASS/FILE.jpg")

struct DataOptions {
  ImageFolderOptions images = {};
  int64_t sequence = 1024;  // tokens per sample
  int64_t vocabulary = 0;   // above 0: token ids must be below it
};

struct OpenedData {
  DatasetPtr dataset;
  std::string format;
  const ImageDataset* images = nullptr;  // the dataset, if it decodes images; else null
  std::vector<std::string> files;        // the files to read, if it decodes no images
  int64_t classes = 0;                   // number of classes; 0: no class labels
  int64_t listed = 0;                    // samples before the limit `most`
  std::vector<BadImage> bad;             // images that were left out
  std::vector<std::string> notes;        // choices to show: "1 link left out"
};

// Throws Error if the path does not exist, no format accepts it, or its contents are invalid.
OpenedData open_data(const std::string& path, const DataOptions& options);
// "*.csv of numbers ...; ..." for a help text. With a name, only of that format.
std::string data_formats_help(const std::string& name = "");
// Returns the end of a file's name from its last dot, in lower case: ".csv".
std::string extension_of(const std::string& path);

namespace formats {
// They return nullopt if the path has another format.
#define X(name, what) std::optional<OpenedData> name(const std::string&, const DataOptions&);
HM_DATA_FORMATS(X)
#undef X
}  // namespace formats

}  // namespace howmany
