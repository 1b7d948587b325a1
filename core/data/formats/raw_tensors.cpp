// SPDX-License-Identifier: Apache-2.0
// Samples are the rows of an array in a memory-mapped .npy file. A row is copied once, to the
// batch.
#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>

#include "core/base/error.h"
#include "core/data/formats.h"
#include "core/data/formats/mapped_file.h"
#include "core/data/formats/npy.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;

// IEEE 754 binary16, as NumPy's float16 is stored. Exact, also for subnormal numbers, infinities
// and NaN.
constexpr float from_float16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t rest = half & 0x7fff;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f80'0000 | (rest & 0x3ff) << 13);
  // Moves the exponent by multiplying, which normalises subnormal numbers too.
  const float size = std::bit_cast<float>(rest << 13) * 0x1p112F;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(size) | sign);
}

using Widen = void (*)(std::span<const std::byte> from, void* to);

template <class From, class To>
void widen(std::span<const std::byte> from, void* to) {
  for (size_t i = 0; i < from.size() / sizeof(From); ++i) {
    From value;
    std::memcpy(&value, from.data() + i * sizeof value, sizeof value);
    static_cast<To*>(to)[i] = static_cast<To>(value);
  }
}

void widen_int8(std::span<const std::byte> from, void* to) {
  for (size_t i = 0; i < from.size(); ++i)
    static_cast<int32_t*>(to)[i] = (std::to_integer<int32_t>(from[i]) ^ 0x80) - 0x80;
}

void widen_float16(std::span<const std::byte> from, void* to) {
  for (size_t i = 0; i < from.size() / 2; ++i) {
    uint16_t half = 0;
    std::memcpy(&half, from.data() + 2 * i, sizeof half);
    static_cast<float*>(to)[i] = from_float16(half);
  }
}

// Returns nullptr if elements are copied as they are.
Widen widening_of(std::string_view descr) {
  if (descr == "f2") return widen_float16;
  if (descr == "i1") return widen_int8;
  if (descr == "i2") return widen<int16_t, int32_t>;
  if (descr == "u2") return widen<uint16_t, int32_t>;
  if (descr == "u4") return widen<uint32_t, int64_t>;
  if (descr == "b1") return widen<uint8_t, int32_t>;
  return nullptr;
}

class Array {
 public:
  explicit Array(const std::string& path)
      : file_(path), header_(header_of(file_)), widen_(widening_of(header_.type.descr)) {
    const int64_t size = header_.type.bytes();
    const int64_t there = (file_.size() - header_.offset) / size;
    HM_ENSURE(header_.shape.rank() > 0,
              "{}: one number alone is no list of samples: save an array of rows", path);
    HM_ENSURE(header_.shape.numel() <= there,
              "{}: truncated, {} elements are announced and {} are there", path,
              header_.shape.numel(), there);
    row_bytes_ = header_.shape.row_numel() * size;
  }

  const std::string& path() const { return file_.path(); }
  int64_t rows() const { return header_.shape[0]; }
  Shape row() const { return Shape(header_.shape.extents().subspan(1)); }
  Dtype dtype() const { return header_.type.dtype; }
  std::string_view type_name() const { return header_.type.name; }
  void copy_row(int64_t row, void* to) const {
    const auto from = file_.bytes(header_.offset + row * row_bytes_, row_bytes_);
    if (widen_ != nullptr) return widen_(from, to);
    std::memcpy(to, from.data(), from.size());
  }
  // The only element of a row of an integer type.
  int64_t whole_number(int64_t row) const {
    int64_t value = 0;  // little-endian, as the file
    copy_row(row, &value);
    return dtype() == Dtype::i32 ? static_cast<int32_t>(value) : value;
  }

 private:
  static NpyHeader header_of(const MappedFile& file) {
    const auto start = file.bytes(0, std::min(file.size(), kMaxNpyHeader));
    try {
      return parse_npy({reinterpret_cast<const char*>(start.data()), start.size()});
    } catch (const Error& e) {
      throw Error(fmt::format("{}: {}", file.path(), e.what()));
    }
  }

  MappedFile file_;
  NpyHeader header_;
  Widen widen_;
  int64_t row_bytes_ = 0;
};

// Returns the number of classes of whole-number labels, one for each sample; else 0.
int64_t classes_in(const Array& labels) {
  if (labels.row().numel() != 1 || labels.dtype() == Dtype::f32 || labels.dtype() == Dtype::f64)
    return 0;
  int64_t classes = 0;
  for (int64_t i = 0; i < labels.rows(); ++i) {
    const int64_t label = labels.whole_number(i);
    HM_ENSURE(label >= 0, "{} row {}: label {}, and classes are numbered from 0", labels.path(), i,
              label);
    classes = std::max(classes, label + 1);
  }
  return classes;
}

class RawTensors final : public Dataset {
 public:
  RawTensors(std::unique_ptr<Array> x, std::unique_ptr<Array> y)
      : x_(std::move(x)), y_(std::move(y)) {}

  int64_t size() const override { return x_->rows(); }
  // y has no elements if there are no labels.
  SampleSpec spec() const override {
    return {.x = x_->row(),
            .x_dtype = x_->dtype(),
            .y = y_ ? y_->row() : Shape({0}),
            .y_dtype = y_ ? y_->dtype() : Dtype::i64};
  }
  void get(int64_t index, uint64_t, void* x, void* y) const override {
    HM_REQUIRE(index >= 0 && index < size(), "[raw_tensors] sample {} of {}", index, size());
    x_->copy_row(index, x);
    if (y_) y_->copy_row(index, y);
  }
  std::string describe() const override {
    return fmt::format("{} samples {} of {} in {}{}", size(), x_->row().str(), x_->type_name(),
                       x_->path(), y_ ? "" : ", without labels");
  }
  std::string name_of(int64_t index) const override {
    return fmt::format("{} row {}", x_->path(), index);
  }

 private:
  std::unique_ptr<Array> x_, y_;
};

// "a/x.npy" -> "a/y.npy", "a/b.npy" -> "a/b.labels.npy"
fs::path labels_beside(const fs::path& x) {
  const std::string stem = x.stem() == "x" ? "y" : x.stem().string() + ".labels";
  return x.parent_path() / (stem + x.extension().string());
}

}  // namespace

std::optional<OpenedData> formats::raw_tensors(const std::string& path, const DataOptions&) {
  std::error_code error;
  const fs::path x = fs::is_directory(path, error) ? fs::path(path) / "x.npy" : fs::path(path);
  if (extension_of(x.string()) != ".npy" || !fs::exists(x, error)) return {};
  OpenedData opened;
  opened.files = {x.string()};
  auto samples = std::make_unique<Array>(x.string());
  HM_ENSURE(samples->rows() > 0, "{}: no samples, its first extent is 0", x.string());
  std::unique_ptr<Array> labels;
  if (const fs::path y = labels_beside(x); fs::exists(y, error)) {
    labels = std::make_unique<Array>(y.string());
    opened.files.push_back(y.string());
    HM_ENSURE(labels->rows() == samples->rows(),
              "{} has {} rows, {} has {}: save a label for each sample", x.string(),
              samples->rows(), y.string(), labels->rows());
    opened.classes = classes_in(*labels);
  }
  opened.listed = samples->rows();
  opened.dataset = std::make_unique<RawTensors>(std::move(samples), std::move(labels));
  return opened;
}

}  // namespace howmany
