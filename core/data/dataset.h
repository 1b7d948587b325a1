// SPDX-License-Identifier: Apache-2.0
// A Dataset has a size and writes sample i into the caller's buffer, so that a batch is collated
// without a copy. get() is thread-safe: loader workers call it concurrently.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/tensor/tensor.h"

namespace howmany {
// The shapes and dtypes of a sample.
struct SampleSpec {
  Shape x = {};  // [1024], [224,224,3]
  Dtype x_dtype = Dtype::f32;
  Shape y = {};  // [] for a class label, [1024] for a label per token, [2] for a target
  Dtype y_dtype = Dtype::i64;
  int64_t vocabulary = 0;  // if x is i64: ids are below this
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual SampleSpec spec() const = 0;
  // Writes sample `index` to x and y, row-major, in the sizes of spec(). Random augmentation
  // depends only on (key, index); `key` is derived from seed and epoch. Throws Error with the file
  // name if the sample cannot be read.
  virtual void get(int64_t index, uint64_t key, void* x, void* y) const = 0;
  virtual std::string describe() const = 0;
  virtual int64_t held_bytes() const { return 0; }  // of tensors that it keeps on the host
  // Returns the name of a sample for messages: its file, if it has one.
  virtual std::string name_of(int64_t index) const { return "sample " + std::to_string(index); }
};

using DatasetPtr = std::unique_ptr<Dataset>;

// Returns random samples. x is drawn from N(0,1), or consists of ids below spec.vocabulary (i64). y
// is a class label below `classes` (i64) or a fixed linear map of x (f32, f64). Sample i depends
// only on (seed, i) and costs little more than a copy.
DatasetPtr synthetic_dataset(const SampleSpec& spec, int64_t size, int64_t classes, uint64_t seed);

// Returns the rows of x [size, ...] and y [size, ...], which it keeps in memory.
DatasetPtr tensor_dataset(Tensor x, Tensor y);

}  // namespace howmany
