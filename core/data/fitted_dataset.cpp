// SPDX-License-Identifier: Apache-2.0
#include "core/data/fitted_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/error.h"

namespace howmany {
namespace {

bool is_integer(Dtype dtype) { return dtype == Dtype::u8 || dtype == Dtype::i32; }

bool converts(Dtype from, Dtype to) {
  if (from == to) return true;
  if (to == Dtype::i64) return is_integer(from);
  return to == Dtype::f32 && (is_integer(from) || from == Dtype::i64 || from == Dtype::f64);
}

bool is_channels_first(const Shape& from, const Shape& to) {
  return from.rank() == 3 && to.rank() == 3 && from != to && from[0] == to[2] && from[1] == to[0] &&
         from[2] == to[1];
}

std::vector<int64_t> without_ones(const Shape& shape) {
  std::vector<int64_t> extents;
  std::ranges::copy_if(shape.extents(), std::back_inserter(extents), [](auto n) { return n != 1; });
  return extents;
}

bool reshapes(const Shape& from, const Shape& to) {
  if (from.numel() != to.numel()) return false;
  return to.rank() == 1 || without_ones(from) == without_ones(to);
}

// How one tensor of a sample, x or y, is converted.
class Conversion {
 public:
  Conversion(const char* name, const Shape& from, Dtype from_type, const Shape& to, Dtype to_type,
             int divisor)
      : name_(name),
        from_(from),
        to_(to),
        from_type_(from_type),
        to_type_(to_type),
        channels_first_(is_channels_first(from, to)),
        divisor_(divisor) {}

  bool changes() const { return from_ != to_ || from_type_ != to_type_; }
  bool is_possible() const {
    return converts(from_type_, to_type_) && (channels_first_ || reshapes(from_, to_));
  }
  int64_t bytes() const { return from_.numel() * static_cast<int64_t>(size_of(from_type_)); }

  void run(const void* from, void* to) const {
    if (to_type_ == Dtype::i64) return run_to<int64_t>(from, to);
    run_to<float>(from, to);
  }

  std::string str() const {
    std::vector<std::string> steps;
    if (divisor_ != 1) steps.emplace_back("divided by 255");
    if (channels_first_) steps.emplace_back("channels last");
    return fmt::format("{} {} {} to {} {}{}{}", name_, ::howmany::name_of(from_type_), from_.str(),
                       ::howmany::name_of(to_type_), to_.str(), steps.empty() ? "" : ": ",
                       fmt::join(steps, ", "));
  }

 private:
  template <typename To>
  void run_to(const void* from, void* to) const {
    switch (from_type_) {
#define X(name, type) \
  case Dtype::name:   \
    return copy(static_cast<const type*>(from), static_cast<To*>(to));
      HM_DTYPES(X)
#undef X
    }
  }

  template <typename From, typename To>
  void copy(const From* from, To* to) const {
    const auto convert = [this](From value) {
      return static_cast<To>(static_cast<To>(value) / static_cast<To>(divisor_));
    };
    const int64_t planes = channels_first_ ? from_[0] : 1, plane = from_.numel() / planes;
    for (int64_t p = 0; p < planes; ++p)
      for (int64_t i = 0; i < plane; ++i) to[i * planes + p] = convert(from[p * plane + i]);
  }

  const char* name_;
  Shape from_, to_;
  Dtype from_type_, to_type_;
  bool channels_first_;
  int divisor_;
};

class FittedDataset final : public Dataset {
 public:
  FittedDataset(DatasetPtr inner, SampleSpec spec, Conversion x, Conversion y)
      : inner_(std::move(inner)), spec_(std::move(spec)), x_(std::move(x)), y_(std::move(y)) {}

  int64_t size() const override { return inner_->size(); }
  SampleSpec spec() const override { return spec_; }
  void get(int64_t index, uint64_t key, void* x, void* y) const override {
    thread_local std::vector<int64_t> space;  // of the strictest alignment
    const auto x_words = x_.bytes() / 8 + 1, y_words = y_.bytes() / 8 + 1;
    space.resize(static_cast<size_t>(x_words + y_words));
    void* const raw_x = x_.changes() ? space.data() : x;
    void* const raw_y = y_.changes() ? space.data() + x_words : y;
    inner_->get(index, key, raw_x, raw_y);
    if (x_.changes()) x_.run(raw_x, x);
    if (y_.changes()) y_.run(raw_y, y);
  }
  std::string describe() const override {
    std::string text = inner_->describe();
    for (const Conversion* c : {&x_, &y_})
      if (c->changes()) text += ", " + c->str();
    return text;
  }
  std::string name_of(int64_t index) const override { return inner_->name_of(index); }

 private:
  DatasetPtr inner_;
  SampleSpec spec_;
  Conversion x_, y_;
};

}  // namespace

DatasetPtr fit_samples(DatasetPtr data, const SampleSpec& wanted) {
  const SampleSpec found = data->spec();
  const bool pixels = found.x_dtype == Dtype::u8 && wanted.x_dtype == Dtype::f32;
  const Conversion x("x", found.x, found.x_dtype, wanted.x, wanted.x_dtype, pixels ? 255 : 1);
  const Conversion y("y", found.y, found.y_dtype, wanted.y, wanted.y_dtype, 1);
  const auto blocked = [](const Conversion& c) { return c.changes() && !c.is_possible(); };
  if (blocked(x) || blocked(y) || (!x.changes() && !y.changes())) return data;
  return std::make_unique<FittedDataset>(std::move(data), wanted, x, y);
}

}  // namespace howmany
