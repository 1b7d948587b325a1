// SPDX-License-Identifier: Apache-2.0
#include "core/data/formats/npy.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace howmany {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxExtents = 6;

constexpr NpyType kTypes[] = {
    {"f2", "float16", Dtype::f32}, {"f4", "float32", Dtype::f32}, {"f8", "float64", Dtype::f64},
    {"i1", "int8", Dtype::i32},    {"i2", "int16", Dtype::i32},   {"i4", "int32", Dtype::i32},
    {"i8", "int64", Dtype::i64},   {"u1", "uint8", Dtype::u8},    {"u2", "uint16", Dtype::i32},
    {"u4", "uint32", Dtype::i64},  {"u8", "uint64", Dtype::i64},  {"b1", "bool", Dtype::i32}};

NpyType type_named(std::string_view descr) {
  const std::string_view type = descr.substr(std::min<size_t>(1, descr.size()));
  const auto known = std::ranges::find(kTypes, type, &NpyType::descr);
  HM_ENSURE(known != std::end(kTypes),
            "elements of type '{}' cannot be read: save array.astype('float32'), or of float16, "
            "float64, bool or an integer type",
            descr);
  HM_ENSURE(descr[0] != '>' || known->bytes() == 1,
            "big-endian elements ('{}'): save array.astype('<{}')", descr, type);
  return *known;
}

// Parses the Python dictionary of the header: strings, booleans and tuples of numbers.
class Literal {
 public:
  explicit Literal(std::string_view text) : rest_(text) {}

  bool take(char c) {
    skip();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    HM_ENSURE(take(c), "the header is not as NumPy writes it: no '{}' where one belongs", c);
  }
  std::string_view word() {
    skip();
    HM_ENSURE(!rest_.empty() && (rest_[0] == '\'' || rest_[0] == '"'),
              "the header is not as NumPy writes it: structured elements cannot be read; save one "
              "field, array['NAME']");
    const size_t end = rest_.find(rest_[0], 1);
    HM_ENSURE(end != std::string_view::npos, "the header is not as NumPy writes it: open string");
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool truth() {
    skip();
    for (const std::string_view name : {"True", "False"}) {
      if (!rest_.starts_with(name)) continue;
      rest_.remove_prefix(name.size());
      return name == "True";
    }
    throw Error("the header is not as NumPy writes it: neither True nor False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    for (expect('('); !take(')');) {
      values.push_back(number());
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

 private:
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  int64_t number() {
    skip();
    int64_t value = -1;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    HM_ENSURE(error == std::errc{} && value >= 0,
              "the header is not as NumPy writes it: an extent that is no number");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    if (rest_.starts_with('L')) rest_.remove_prefix(1);  // Python 2's long
    return value;
  }

  std::string_view rest_;
};

struct Dictionary {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran;
  std::optional<std::vector<int64_t>> shape;
};

Dictionary read_dictionary(std::string_view text) {
  Dictionary read;
  Literal literal(text);
  for (literal.expect('{'); !literal.take('}');) {
    const std::string_view key = literal.word();
    literal.expect(':');
    if (key == "descr")
      read.descr = literal.word();
    else if (key == "fortran_order")
      read.fortran = literal.truth();
    else if (key == "shape")
      read.shape = literal.tuple();
    else
      throw Error(fmt::format("the header is not as NumPy writes it: key '{}'", key));
    if (!literal.take(',')) {
      literal.expect('}');
      break;
    }
  }
  HM_ENSURE(read.descr && read.fortran && read.shape,
            "the header is not as NumPy writes it: descr, fortran_order or shape is missing");
  return read;
}

int64_t little_endian(std::string_view bytes) {
  int64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

Shape shape_from(const std::vector<int64_t>& extents) {
  HM_ENSURE(extents.size() <= kMaxExtents, "{} extents, at most {} can be read", extents.size(),
            kMaxExtents);
  try {
    Shape shape(extents);
    shape.numel();
    return shape;
  } catch (const std::invalid_argument& e) {
    throw Error(e.what());
  }
}

}  // namespace

NpyHeader parse_npy(std::string_view start) {
  HM_ENSURE(start.starts_with(kMagic), "not a .npy file: it does not begin as NumPy's do");
  HM_ENSURE(start.size() >= 12, "cut short in its header");
  const int version = static_cast<uint8_t>(start[6]);
  HM_ENSURE(version >= 1 && version <= 3, "format {} of .npy, 1 to 3 can be read", version);
  const size_t begin = version == 1 ? 10 : 12;
  const int64_t length = little_endian(start.substr(8, begin - 8));
  const int64_t offset = static_cast<int64_t>(begin) + length;
  HM_ENSURE(offset <= kMaxNpyHeader, "a header of {} bytes, at most {} can be read", length,
            kMaxNpyHeader);
  HM_ENSURE(offset <= static_cast<int64_t>(start.size()), "cut short in its header");
  const Dictionary read = read_dictionary(start.substr(begin, static_cast<size_t>(length)));
  HM_ENSURE(!*read.fortran || read.shape->size() < 2,
            "elements in Fortran order: save numpy.ascontiguousarray(array)");
  return {type_named(*read.descr), shape_from(*read.shape), offset};
}

}  // namespace howmany
