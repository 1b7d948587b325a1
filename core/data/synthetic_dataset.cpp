// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/data/dataset.h"
#include "core/tensor/rng.h"

namespace howmany {
namespace {

// To draw a number may cost more than to train on it. So samples are slices of one pool of noise:
// disjoint while they fit, and at random offsets after that.
constexpr int64_t kPoolValues = 1 << 18;

bool real(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::f64; }

class SyntheticDataset final : public Dataset {
 public:
  SyntheticDataset(const SampleSpec& spec, int64_t size, int64_t classes, uint64_t seed)
      : spec_(spec),
        size_(size),
        classes_(classes),
        inputs_(spec.x.numel()),
        disjoint_(size <= kPoolValues / inputs_),
        places_(seed, stream_of("synthetic.place")),
        labels_(seed, stream_of("synthetic.label")) {
    pool_ = Tensor::empty({disjoint_ ? size * inputs_ : kPoolValues + inputs_}, spec.x_dtype);
    fill_pool(Rng(seed, stream_of("synthetic.x")));
    if (!real(spec.y_dtype)) return;
    map_ = Tensor::empty({spec.y.numel(), inputs_}, spec.x_dtype);
    fill_normal(map_, 0, 1 / std::sqrt(static_cast<double>(inputs_)),
                Rng(seed, stream_of("synthetic.map")));
  }

  int64_t size() const override { return size_; }
  SampleSpec spec() const override { return spec_; }
  std::string describe() const override {
    return fmt::format("{} synthetic samples {}", size_, spec_.x.str());
  }

  int64_t held_bytes() const override { return pool_.bytes() + map_.bytes(); }

  void get(int64_t index, uint64_t, void* x, void* y) const override {
    HM_REQUIRE(index >= 0 && index < size_, "[synthetic_dataset] sample {} of {}", index, size_);
    if (spec_.x_dtype == Dtype::i64)
      write<int64_t>(index, x, y);
    else if (spec_.x_dtype == Dtype::f32)
      write<float>(index, x, y);
    else
      write<double>(index, x, y);
  }

 private:
  void fill_pool(const Rng& rng) {
    if (spec_.x_dtype != Dtype::i64) return fill_normal(pool_, 0, 1, rng);
    uint64_t draw = 0;
    for (int64_t& id : pool_.mutable_values<int64_t>()) id = rng.below(draw++, spec_.vocabulary);
  }

  template <typename T>
  void write(int64_t index, void* x, void* y) const {
    const auto draw = static_cast<uint64_t>(index);
    const int64_t place = disjoint_ ? index * inputs_ : places_.below(draw, kPoolValues + 1);
    const T* const values = pool_.data<T>() + place;
    std::copy_n(values, inputs_, static_cast<T*>(x));
    if (!map_) {
      const auto each = static_cast<uint64_t>(spec_.y.numel());
      auto* const labels = static_cast<int64_t*>(y);
      for (uint64_t k = 0; k < each; ++k) labels[k] = labels_.below(draw * each + k, classes_);
      return;
    }
    for (int64_t k = 0; k < spec_.y.numel(); ++k) {
      const T* const row = map_.data<T>() + k * inputs_;
      T sum = 0;
      for (int64_t j = 0; j < inputs_; ++j) sum += row[j] * values[j];
      static_cast<T*>(y)[k] = sum;
    }
  }

  SampleSpec spec_;
  int64_t size_, classes_, inputs_;
  bool disjoint_;
  Rng places_, labels_;
  Tensor pool_, map_;
};

}  // namespace

DatasetPtr synthetic_dataset(const SampleSpec& spec, int64_t size, int64_t classes, uint64_t seed) {
  HM_REQUIRE(size >= 1, "[synthetic_dataset] {} samples", size);
  const bool ids = spec.x_dtype == Dtype::i64 && spec.vocabulary > 0;
  HM_REQUIRE(spec.x.numel() >= 1 && (real(spec.x_dtype) || ids), "[synthetic_dataset] x {} of {}",
             spec.x.str(), name_of(spec.x_dtype));
  const bool label = spec.y_dtype == Dtype::i64 && spec.y.numel() >= 1;
  HM_REQUIRE(label || (!ids && spec.y_dtype == spec.x_dtype && spec.y.numel() >= 1),
             "[synthetic_dataset] y {} of {} is neither an i64 label nor a {} target", spec.y.str(),
             name_of(spec.y_dtype), name_of(spec.x_dtype));
  HM_REQUIRE(!label || classes >= 1, "[synthetic_dataset] {} classes", classes);
  return std::make_unique<SyntheticDataset>(spec, size, classes, seed);
}

}  // namespace howmany
