// Samples are the rows of an array in a memory-mapped .npy file. A row is copied once, to the
// batch.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/base/error.h"
#include "core/data/formats.h"
#include "core/data/formats/mapped_file.h"
#include "core/data/formats/npy.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;

class Array {
 public:
  explicit Array(const std::string& path) : file_(path), header_(header_of(file_)) {
    const auto size = static_cast<int64_t>(size_of(header_.dtype));
    const int64_t there = (file_.size() - header_.offset) / size;
    HM_ENSURE(header_.shape.rank() > 0, "{}: one number alone is no list of samples", path);
    HM_ENSURE(header_.shape.numel() <= there,
              "{}: truncated, {} elements are announced and {} are there", path,
              header_.shape.numel(), there);
    row_bytes_ = header_.shape.row_numel() * size;
  }

  const std::string& path() const { return file_.path(); }
  int64_t rows() const { return header_.shape[0]; }
  Shape row() const { return Shape(header_.shape.extents().subspan(1)); }
  Dtype dtype() const { return header_.dtype; }
  void copy_row(int64_t row, void* to) const {
    const auto from = file_.bytes(header_.offset + row * row_bytes_, row_bytes_);
    std::memcpy(to, from.data(), from.size());
  }

 private:
  static NpyHeader header_of(const MappedFile& file) {
    const auto start = file.bytes(0, std::min(file.size(), kMostNpyHeader));
    try {
      return parse_npy({reinterpret_cast<const char*>(start.data()), start.size()});
    } catch (const Error& e) {
      throw Error(fmt::format("{}: {}", file.path(), e.what()));
    }
  }

  MappedFile file_;
  NpyHeader header_;
  int64_t row_bytes_ = 0;
};

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
    return fmt::format("{} samples {} of {} in {}{}", size(), x_->row().str(),
                       ::howmany::name_of(x_->dtype()), x_->path(), y_ ? "" : ", without labels");
  }
  std::string name_of(int64_t index) const override {
    return fmt::format("{} row {}", x_->path(), index);
  }

 private:
  std::unique_ptr<Array> x_, y_;
};

// "a/x.npy" -> "a/y.npy", "a/b.npy" -> "a/b.labels.npy"
fs::path labels_beside(const fs::path& x) {
  return x.stem() == "x" ? x.parent_path() / "y.npy"
                         : x.parent_path() / (x.stem().string() + ".labels.npy");
}

}  // namespace

std::optional<OpenedData> formats::raw_tensors(const std::string& path, const DataOptions&) {
  std::error_code error;
  const fs::path x = fs::is_directory(path, error) ? fs::path(path) / "x.npy" : fs::path(path);
  if (x.extension() != ".npy" || !fs::exists(x, error)) return {};
  OpenedData opened;
  opened.files = {x.string()};
  auto samples = std::make_unique<Array>(x.string());
  HM_ENSURE(samples->rows() > 0, "{}: no samples", x.string());
  std::unique_ptr<Array> labels;
  if (const fs::path y = labels_beside(x); fs::exists(y, error)) {
    labels = std::make_unique<Array>(y.string());
    opened.files.push_back(y.string());
    HM_ENSURE(labels->rows() == samples->rows(), "{} has {} rows, {} has {}", x.string(),
              samples->rows(), y.string(), labels->rows());
  }
  opened.listed = samples->rows();
  opened.dataset = std::make_unique<RawTensors>(std::move(samples), std::move(labels));
  return opened;
}

}  // namespace howmany
