// SPDX-License-Identifier: Apache-2.0
// --data: the samples of each format, and the errors.
// labels: threads
#include "core/data/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/data/image_folder.h"
#include "tests/support/image_files.h"
#include "tests/support/message_of.h"
#include "tests/support/npy_files.h"
#include "tests/support/tar_files.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;
using namespace testing_support;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string refusal(const std::string& path, const DataOptions& options = {}) {
  return message_of<Error>([&] { open_data(path, options); });
}

template <class X, class Y>
struct Row {
  std::vector<X> x;
  std::vector<Y> y;
};

template <class X, class Y>
Row<X, Y> row(const Dataset& data, int64_t index) {
  Row<X, Y> r{std::vector<X>(static_cast<size_t>(data.spec().x.numel())),
              std::vector<Y>(static_cast<size_t>(data.spec().y.numel()))};
  data.get(index, 0, r.x.data(), r.y.data());
  return r;
}

TEST(OpenData, RefusesUnknownPaths) {
  const TempFolder folder;
  EXPECT_THAT(refusal(folder / "none"), HasSubstr("does not exist"));
  const std::string why = refusal(folder.write("notes.txt", "hello"));
  EXPECT_THAT(why, HasSubstr("not a folder"));
  for (const char* known : {"*.npy", "*.tar", "*.csv", "*.bin", "CLASS/FILE.jpg"})
    EXPECT_THAT(why, HasSubstr(known));
}

TEST(OpenData, AFolderOfClassFolders) {
  const TempFolder folder;
  folder.write("a b\n/x.jpg", jpeg_file(20, 16));
  folder.write("c/y.jpg", jpeg_file(20, 16));
  const OpenedData data = open_data(folder.path(), {.images = {.size = 8}});
  EXPECT_EQ(data.format, "image_folder");
  EXPECT_EQ(data.classes, 2);
  EXPECT_EQ(data.images, data.dataset.get());
  EXPECT_EQ(data.images->part_of(0).path, folder / "a b\n/x.jpg");
  EXPECT_EQ(data.images->part_of(1).path, folder / "c/y.jpg");
}

// ---- raw tensors

TEST(RawTensors, RowsAreSamples) {
  const TempFolder folder;
  folder.write("x.npy", npy_file<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6}));
  folder.write("y.npy", npy_file<int64_t>("<i8", "(3,)", {7, 8, 9}));
  for (const std::string& path : {folder.path(), folder / "x.npy"}) {
    const OpenedData data = open_data(path, {});
    EXPECT_EQ(data.format, "raw_tensors");
    EXPECT_EQ(data.dataset->size(), 3);
    EXPECT_EQ(data.dataset->spec().x, Shape({2}));
    EXPECT_EQ(data.dataset->spec().y, Shape());
    const auto r = row<float, int64_t>(*data.dataset, 2);
    EXPECT_THAT(r.x, ElementsAre(5, 6));
    EXPECT_THAT(r.y, ElementsAre(9));
    EXPECT_THROW((row<float, int64_t>(*data.dataset, 3)), std::invalid_argument);
  }
}

TEST(RawTensors, ReadEveryKnownTypeOfNumPy) {
  const TempFolder folder;
  const std::vector<std::pair<std::string, Dtype>> types = {
      {"<f4", Dtype::f32}, {"<f8", Dtype::f64}, {"<i4", Dtype::i32}, {"<i8", Dtype::i64},
      {"|u1", Dtype::u8},  {"|b1", Dtype::i32}, {"|i1", Dtype::i32}, {"<i2", Dtype::i32},
      {"<u2", Dtype::i32}, {"<u4", Dtype::i64}, {">u1", Dtype::u8}};
  for (const int version : {1, 2, 3})
    for (const auto& [descr, dtype] : types) {
      folder.write("a.npy",
                   npy_around(npy_header(descr, "(2, 1, 3)"), std::string(48, '\0'), version));
      const OpenedData data = open_data(folder / "a.npy", {});
      EXPECT_EQ(data.dataset->spec().x_dtype, dtype);
      EXPECT_EQ(data.dataset->spec().x, Shape({1, 3}));
    }
}

TEST(RawTensors, Float16IsReadAsF32) {
  const TempFolder folder;
  // 1, -2, the largest, the smallest subnormal, infinity, 0.1
  folder.write("a.npy", npy_file<uint16_t>("<f2", "(1, 6)",
                                           {0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x2e66}));
  const OpenedData data = open_data(folder / "a.npy", {});
  EXPECT_EQ(data.dataset->spec().x_dtype, Dtype::f32);
  EXPECT_THAT((row<float, int64_t>(*data.dataset, 0).x),
              ElementsAre(1, -2, 65504, 0x1p-24F, INFINITY, 0.0999755859375F));
}

template <class Stored, class Read>
std::vector<Read> read_as(const std::string& descr, const std::vector<Stored>& values) {
  const TempFolder folder;
  folder.write("a.npy", npy_file<Stored>(descr, "(1, 3)", values));
  return row<Read, int64_t>(*open_data(folder / "a.npy", {}).dataset, 0).x;
}

TEST(RawTensors, ShortIntegersKeepTheirValues) {
  EXPECT_THAT((read_as<int8_t, int32_t>("|i1", {-128, 0, 127})), ElementsAre(-128, 0, 127));
  EXPECT_THAT((read_as<uint8_t, int32_t>("|b1", {0, 1, 1})), ElementsAre(0, 1, 1));
  EXPECT_THAT((read_as<int16_t, int32_t>("<i2", {-32768, 0, 1})), ElementsAre(-32768, 0, 1));
  EXPECT_THAT((read_as<uint16_t, int32_t>("<u2", {65535, 0, 1})), ElementsAre(65535, 0, 1));
  EXPECT_THAT((read_as<uint32_t, int64_t>("<u4", {4294967295, 0, 1})),
              ElementsAre(4294967295, 0, 1));
}

TEST(RawTensors, LabelsMayBeOfAnyIntegerType) {
  const TempFolder folder;
  folder.write("a.NPY", npy_file<float>("<f4", "(2, 1)", {1, 2}));
  folder.write("a.labels.NPY", npy_file<uint16_t>("<u2", "(2,)", {0, 4}));
  const OpenedData data = open_data(folder / "a.NPY", {});
  EXPECT_EQ(data.classes, 5);
  EXPECT_THAT((row<float, int32_t>(*data.dataset, 1).y), ElementsAre(4));
}

TEST(RawTensors, HeadersOfPython2AreRead) {
  const TempFolder folder;
  folder.write("a.npy", npy_around(npy_header("<f4", "(2L, 1L)"), std::string(8, '\0')));
  EXPECT_EQ(open_data(folder / "a.npy", {}).dataset->spec().x, Shape({1}));
}

TEST(RawTensors, WithoutLabelsYHasNoElements) {
  const TempFolder folder;
  folder.write("a.npy", npy_file<uint8_t>("|u1", "(2, 2)", {1, 2, 3, 4}));
  const OpenedData data = open_data(folder / "a.npy", {});
  EXPECT_EQ(data.dataset->spec().y, Shape({0}));
  EXPECT_THAT((row<uint8_t, int64_t>(*data.dataset, 1).x), ElementsAre(3, 4));
  EXPECT_THAT(data.dataset->describe(), HasSubstr("without labels"));
}

TEST(RawTensors, BadFilesAreNamedWithTheReason) {
  const TempFolder folder;
  const std::string four(16, '\0');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "empty file"},
      {"hello, this is no array", "not a .npy file"},
      {std::string("\x93NUMPY\x01\x00\xff", 9), "cut short"},
      {npy_around(npy_header("<f4", "(4,)"), four.substr(1)), "truncated"},
      {npy_around(npy_header("<f4", "(4, 9223372036854775807)"), four), "too many elements"},
      {npy_around(npy_header("<f8", "(1152921504606846977,)"), four), "truncated"},
      {npy_around(npy_header(">f4", "(4,)"), four), "big-endian"},
      {npy_around(npy_header("<c8", "(4,)"), four), "'<c8'"},
      {npy_around(npy_header("|O", "(4,)"), four), "'|O'"},
      {npy_around(npy_header("", "(4,)"), four), "''"},
      {npy_around("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }", four),
       "structured"},
      {npy_around(npy_header("<f4", "(2, 2)", "True"), four), "Fortran order"},
      {npy_around(npy_header("<f4", "()"), four), "one number alone"},
      {npy_around(npy_header("<f4", "(0, 4)"), four), "no samples"},
      {npy_around(npy_header("<f4", "(1,1,1,1,1,1,4)"), four), "7 extents"},
      {npy_around(npy_header("<f4", "(-4,)"), four), "no number"},
      {npy_around("{'descr': '<f4', 'shape': (4,)}", four), "missing"},
      {npy_around("print('hi')", four), "not as NumPy writes it"}};
  for (const auto& [bytes, why] : cases) {
    folder.write("a.npy", bytes);
    EXPECT_THAT(refusal(folder / "a.npy"), HasSubstr(why));
    EXPECT_THAT(refusal(folder / "a.npy"), HasSubstr("a.npy"));
  }
}

TEST(RawTensors, LabelsMustBeAsMany) {
  const TempFolder folder;
  folder.write("a.npy", npy_file<float>("<f4", "(2, 1)", {1, 2}));
  folder.write("a.labels.npy", npy_file<int64_t>("<i8", "(3,)", {1, 2, 3}));
  EXPECT_THAT(refusal(folder / "a.npy"), HasSubstr("3"));
}

TEST(RawTensors, AFileThatShrinksIsAnErrorNotASignal) {
  const TempFolder folder;
  const std::string path =
      folder.write("a.npy", npy_file<float>("<f4", "(4096, 4)", std::vector<float>(16384, 1)));
  const OpenedData data = open_data(path, {});
  fs::resize_file(path, 4096);
  EXPECT_THAT(message_of<Error>([&] { row<float, int64_t>(*data.dataset, 4000); }),
              HasSubstr("shorter"));
}

// ---- tokens

template <class Id>
std::string ids_file(const std::vector<Id>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(Id)};
}

TEST(Tokens, LabelsAreTheTokensAfter) {
  const TempFolder folder;
  const std::vector<std::string> paths = {
      folder.write("a.bin", ids_file<uint16_t>({1, 2, 3, 65535, 5, 6, 7, 8})),
      folder.write("a.u16", ids_file<uint16_t>({1, 2, 3, 65535, 5, 6, 7, 8})),
      folder.write("a.u32", ids_file<uint32_t>({1, 2, 3, 65535, 5, 6, 7, 8}))};
  for (const std::string& path : paths) {
    const OpenedData data = open_data(path, {.sequence = 3});
    EXPECT_EQ(data.dataset->size(), 2);  // a third sample lacks the label of its last token
    const auto r = row<int64_t, int64_t>(*data.dataset, 1);
    EXPECT_THAT(r.x, ElementsAre(65535, 5, 6));
    EXPECT_THAT(r.y, ElementsAre(5, 6, 7));
  }
}

// The header of llm.c: 256 numbers, of which three are used.
std::string llmc_header(int32_t kind, int32_t tokens) {
  std::vector<int32_t> header(256);
  header[0] = kind;
  header[1] = kind == 20240520 ? 1 : 7;
  header[2] = tokens;
  return ids_file(header);
}

TEST(Tokens, HeadersOfLlmcAreKnown) {
  const TempFolder folder;
  const std::vector<std::string> paths = {
      folder.write("a.bin", llmc_header(20240520, 5) + ids_file<uint16_t>({1, 2, 3, 4, 5})),
      folder.write("b.BIN", llmc_header(20240801, 5) + ids_file<uint32_t>({1, 2, 3, 4, 5}))};
  for (const std::string& path : paths) {
    const OpenedData data = open_data(path, {.sequence = 2});
    EXPECT_EQ(data.dataset->size(), 2);
    EXPECT_THAT((row<int64_t, int64_t>(*data.dataset, 1).y), ElementsAre(4, 5));
    EXPECT_THAT(data.notes, IsEmpty());
  }
  EXPECT_THAT(refusal(folder.write("c.bin", llmc_header(20240520, 9) + "abcd")),
              AllOf(HasSubstr("c.bin"), HasSubstr("9 tokens"), HasSubstr("2 are there")));
  EXPECT_THAT(refusal(folder.write("model.bin", llmc_header(20240326, 9))),
              AllOf(HasSubstr("model.bin"), HasSubstr("20240326")));
}

TEST(Tokens, WithoutAHeaderTheNumberOfBitsIsNoted) {
  const TempFolder folder;
  const std::string ids = ids_file<uint16_t>({1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(open_data(folder.write("a.bin", ids), {.sequence = 2}).notes,
              ElementsAre(HasSubstr("16 bits")));
  EXPECT_THAT(open_data(folder.write("a.u16", ids), {.sequence = 2}).notes, IsEmpty());
}

TEST(Tokens, RefuseFilesThatAreNoTokens) {
  const TempFolder folder;
  EXPECT_THAT(refusal(folder.write("a.u32", "123456")), HasSubstr("no whole number"));
  EXPECT_THAT(refusal(folder.write("a.bin", ids_file<uint16_t>({1, 2, 3})), {.sequence = 3}),
              HasSubstr("too few"));
  EXPECT_THAT(refusal(folder.write("b.bin", "")), HasSubstr("empty file"));
  const OpenedData data = open_data(folder.write("c.bin", ids_file<uint16_t>({1, 2, 50257, 1})),
                                    {.sequence = 3, .vocabulary = 50257});
  EXPECT_THROW((row<int64_t, int64_t>(*data.dataset, 0)), Error);
}

// ---- CSV

TEST(Csv, NumbersAndWordsForClasses) {
  const TempFolder folder;
  const std::string path = folder.write(
      "a.csv", "\"w, h\",label,depth\r\n1,cat,-2.5e1\r\n 3 ,\"a \"\"dog\"\"\",4\n5,cat,+6");
  const OpenedData data = open_data(path, {});
  EXPECT_EQ(data.format, "csv");
  EXPECT_EQ(data.classes, 2);
  EXPECT_EQ(data.dataset->size(), 3);
  const auto first = row<float, int64_t>(*data.dataset, 0);
  EXPECT_THAT(first.x, ElementsAre(1, -25));
  EXPECT_THAT(first.y, ElementsAre(1));  // after "a "dog""
  EXPECT_THAT((row<float, int64_t>(*data.dataset, 1).y), ElementsAre(0));
  EXPECT_THAT((row<float, int64_t>(*data.dataset, 2).x), ElementsAre(5, 6));
  EXPECT_EQ(data.dataset->name_of(2), path + " line 4");
}

TEST(Csv, WithoutAHeaderTheLastColumnIsTheLabel) {
  const TempFolder folder;
  const OpenedData classes = open_data(folder.write("a.csv", "1,2,0\n3,4,7\n"), {});
  EXPECT_EQ(classes.classes, 8);
  EXPECT_EQ(classes.dataset->size(), 2);
  const OpenedData values = open_data(folder.write("b.csv", "1,2,0.5\n3,4,7\n"), {});
  EXPECT_EQ(values.classes, 0);
  EXPECT_EQ(values.dataset->spec().y_dtype, Dtype::f32);
  EXPECT_THAT((row<float, float>(*values.dataset, 0).y), ElementsAre(0.5f));
}

TEST(Csv, ColumnsMayBeCalledByNumbers) {
  const TempFolder folder;
  const OpenedData data = open_data(folder.write("a.csv", "0,1,label\n5,6,1\n"), {});
  EXPECT_EQ(data.dataset->size(), 1);
  EXPECT_THAT((row<float, int64_t>(*data.dataset, 0).x), ElementsAre(5, 6));
}

TEST(Csv, AMarkAndEmptyLinesAreSkipped) {
  const TempFolder folder;
  const OpenedData data = open_data(
      folder.write("a.CSV", "\xef\xbb\xbf\r\nw,h,label\r\n\r\n1,2,0\r\n  \r\n3,4,1\r\n\r\n"), {});
  ASSERT_EQ(data.dataset->size(), 2);
  EXPECT_THAT((row<float, int64_t>(*data.dataset, 0).x), ElementsAre(1, 2));
  EXPECT_THAT((row<float, int64_t>(*data.dataset, 1).x), ElementsAre(3, 4));
  EXPECT_EQ(data.dataset->name_of(1), folder / "a.CSV line 6");
}

TEST(Csv, TheLabelMayHaveCapitals) {
  const TempFolder folder;
  const OpenedData data = open_data(folder.write("a.csv", " Label ,f1,f2\n3,1,2\n4,3,4\n"), {});
  EXPECT_THAT((row<float, int64_t>(*data.dataset, 1).x), ElementsAre(3, 4));
  EXPECT_THAT((row<float, int64_t>(*data.dataset, 1).y), ElementsAre(4));
}

// pandas writes numbers if its columns have no names, and an index with an empty name.
TEST(Csv, NumbersOfColumnsAreAHeaderAndNoted) {
  const TempFolder folder;
  for (const char* header : {"0,1,2", ",0,1"}) {
    const OpenedData data =
        open_data(folder.write("a.csv", std::string(header) + "\n5,6,1\n7,8,0\n"), {});
    EXPECT_EQ(data.dataset->size(), 2);
    EXPECT_THAT(data.notes, Contains(HasSubstr("line 1 (0 to")));
  }
  EXPECT_EQ(open_data(folder.write("a.csv", "0,1\n5,0\n"), {}).dataset->size(), 2);
  EXPECT_EQ(open_data(folder.write("a.csv", "0,1,3\n5,0,1\n"), {}).dataset->size(), 2);
}

TEST(Csv, BadFilesAreNamedWithTheLine) {
  const TempFolder folder;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "empty file"},
      {"a,label\n", "no rows"},
      {"1\n2\n", "line 1: 1 column"},
      {"1,2\n3\n", "line 2: 1 fields"},
      {"\n\n", "no rows"},
      {"1,2\nx,4\n", "line 2: 'x' in column 1"},
      {"age,label\nx,4\n", "line 2: 'x' in column 1 (age)"},
      {"age,label\nNA,4\n", "fill in missing values"},
      {"1,5;2,5;0\n", "separate the fields by commas"},
      {"1,y,3\n1,2,3\n", "line 1: 'y' in column 2"},
      {"1,2\n,4\n", "line 2: '' in column 1"},
      {"1,2\n3,\n", "line 2: no label"},
      {"1,2\n3,\"4\n5,6\n", "line 2: a quote that is never closed"},
      {"1,2\n3,\"4\"5\n", "line 2: text after a closing quote"},
      {"1,2\n3,4\"\n", "line 2: a quote inside"},
      {"1,2\r3,4\n", "line 1: a carriage return"},
      {std::string("\xff\xfe"
                   "1\0,\0",
                   6),
       "UTF-16"},
      {std::string("1,2\n\0,4\n", 8), "line 2: a NUL byte"},
      {"1;2\n", "line 1: fields are separated by semicolons"},
      {"1\t2\n", "line 1: fields are separated by tabs"},
      {"1,2\nx\x1b[2J,4\n", "line 2: 'x?[2J' in column 1"}};
  for (const auto& [text, why] : cases) {
    folder.write("a.csv", text);
    EXPECT_THAT(refusal(folder / "a.csv"), HasSubstr(why)) << text;
  }
}

TEST(Csv, AFileThatChangesIsAnErrorNotASignal) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "1.5,2.5,1\n";
  const OpenedData data = open_data(folder.write("a.csv", text), {});
  fs::resize_file(folder / "a.csv", 100);
  EXPECT_THROW((row<float, int64_t>(*data.dataset, 4999)), Error);
}

// ---- tar shards

std::string sample_members(const std::string& key, const std::string& label, int level) {
  const auto paint = [level](int, int) {
    const auto l = static_cast<uint8_t>(level);
    return Rgb{l, l, l};
  };
  return tar_member(key + ".jpg", jpeg_file(24, 24, paint)) + tar_member(key + ".cls", label) +
         tar_member(key + ".json", "{}");
}

DataOptions plain_images() { return {.images = {.size = 8, .train = false, .normalize = false}}; }

TEST(TarShards, SamplesOfAllShardsByOffset) {
  const TempFolder folder;
  folder.write("s1.tar", sample_members("b/0001", "2", 200) + tar_end());
  folder.write("s0.tar", sample_members("a/0001", "0\n", 50) + sample_members("a/0002", "1", 100) +
                             tar_end());
  const OpenedData data = open_data(folder.path(), plain_images());
  EXPECT_EQ(data.format, "tar_shards");
  EXPECT_EQ(data.classes, 3);
  ASSERT_EQ(data.dataset->size(), 3);
  for (const int64_t i : {2, 0, 1}) {
    const auto r = row<float, int64_t>(*data.dataset, i);
    EXPECT_THAT(r.y, ElementsAre(i));
    EXPECT_NEAR(r.x[100] * 255, i == 2 ? 200.0 : 50.0 * static_cast<double>(i + 1), 3);
  }
  EXPECT_EQ(data.dataset->name_of(1), folder / "s0.tar:a/0002.jpg");
  EXPECT_EQ(open_data(folder / "s0.tar", plain_images()).dataset->size(), 2);
}

// GNU tar and Python write long names and links in extra members before the actual header.
TEST(TarShards, LongNamesAndOtherMembersDoNotMoveTheOffsets) {
  const TempFolder folder;
  const std::string deep = "d/" + std::string(150, 'k');
  folder.write("a.tar", tar_member("x", "", '2') +
                            tar_member("././@LongLink", deep + ".jpg" + '\0', 'L') +
                            tar_member("short.jpg", png_file(24, 24)) +
                            tar_member("././@LongLink", deep + ".cls" + '\0', 'L') +
                            tar_member("short.cls", "4") + tar_end());
  const OpenedData data = open_data(folder / "a.tar", plain_images());
  ASSERT_EQ(data.dataset->size(), 1);
  EXPECT_EQ(data.dataset->name_of(0), folder / "a.tar:" + deep + ".jpg");
  EXPECT_THAT((row<float, int64_t>(*data.dataset, 0).y), ElementsAre(4));
}

TEST(TarShards, BadArchivesAreNamedWithTheReason) {
  const TempFolder folder;
  const std::string good = sample_members("a", "1", 100);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "empty file"},
      {std::string(700, 'x'), "a.tar: "},
      {"\x1f\x8b" + std::string(600, '\0'), "compressed"},
      {tar_member("../../etc/passwd", "x") + tar_end(), "leads out of the archive"},
      {tar_member("a/../../b.jpg", "x") + tar_end(), "leads out of the archive"},
      {tar_member("/etc/passwd", "x") + tar_end(), "leads out of the archive"},
      {good, "end mark"},
      {good.substr(0, 700), "truncated"},
      {good.substr(0, 100), "Unrecognized"},
      {tar_member("a.jpg", "x") + tar_end(), "a.jpg (neither JPEG"},
      {tar_member("a.jpg", "", '2') + tar_end(), "1 link"},
      {tar_member("a.txt", "x") + tar_end(), "it has .txt"}};
  for (const auto& [bytes, why] : cases) {
    folder.write("a.tar", bytes);
    EXPECT_THAT(refusal(folder / "a.tar"), HasSubstr(why));
    EXPECT_THAT(refusal(folder / "a.tar"), HasSubstr("a.tar"));
  }
}

TEST(TarShards, RefuseCompressedArchives) {
  for (const char* name : {"b.tar.gz", "b.tgz", "b.tar.zst", "b.tar.xz", "b.tar.bz2"}) {
    const TempFolder folder;
    folder.write("a.tar", sample_members("a", "1", 100) + tar_end());
    folder.write(name, "\x1f\x8b" + std::string(600, '\0'));
    for (const std::string& path : {folder / name, folder / "."})
      EXPECT_THAT(refusal(path), AllOf(HasSubstr(name), HasSubstr("decompress it")));
  }
}

std::string image_member(const std::string& name) { return tar_member(name, jpeg_file(24, 24)); }

// Opens a.tar of these members.
OpenedData open_members(const std::string& members, OnBadImage on_bad = OnBadImage::refuse) {
  static const TempFolder folder;
  DataOptions options = plain_images();
  options.images.on_bad = on_bad;
  return open_data(folder.write("a.tar", members + tar_end()), options);
}

std::vector<int64_t> labels_of(const OpenedData& data) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < data.dataset->size(); ++i)
    for (const int64_t label : row<float, int64_t>(*data.dataset, i).y) labels.push_back(label);
  return labels;
}

TEST(TarShards, LabelsAreNotNeeded) {
  const OpenedData data = open_members(image_member("0.jpg") + tar_member("0.txt", "a cat") +
                                       tar_member("0.json", R"({"url": "x"})"));
  EXPECT_EQ(data.dataset->spec().y, Shape({0}));
  EXPECT_EQ(data.classes, 0);
  EXPECT_THAT(data.notes, IsEmpty());
  row<float, int64_t>(*data.dataset, 0);
}

TEST(TarShards, LabelsOfSomeSamplesAreNotUsed) {
  const OpenedData data =
      open_members(image_member("0.jpg") + tar_member("0.cls", "1") + image_member("1.jpg"));
  EXPECT_EQ(data.classes, 0);
  EXPECT_THAT(data.notes,
              ElementsAre(AllOf(HasSubstr("1 of 2 samples"), HasSubstr("a.tar:1.jpg"))));
}

TEST(TarShards, LabelsMayBeWordsOrJson) {
  const auto pair = [](const std::string& type, const std::string& first,
                       const std::string& second) {
    return labels_of(open_members(image_member("0.jpg") + tar_member("0." + type, first) +
                                  image_member("1.jpg") + tar_member("1." + type, second)));
  };
  EXPECT_THAT(pair("cls", "dog\n", "cat\r\n"), ElementsAre(1, 0));
  EXPECT_THAT(pair("CLS", "3\n", " 0 "), ElementsAre(3, 0));
  EXPECT_THAT(pair("json", R"({"label": 3})", R"({"label": 1, "url": "x"})"), ElementsAre(3, 1));
  EXPECT_THAT(pair("json", R"({"class": "dog"})", R"({"cls": "cat"})"), ElementsAre(1, 0));
  EXPECT_THAT(pair("json", "3", "\"3\""), ElementsAre(3, 3));
  EXPECT_THAT(pair("json", "{\"label\": 3", "[1]"), IsEmpty());
  EXPECT_THAT(pair("cls", "-1", "0.5"), IsEmpty());
}

TEST(TarShards, KeysAreThoseOfWebdataset) {
  const OpenedData data =
      open_members(tar_member("./._0.jpg", "mac") + image_member("./0.JPG") +
                   tar_member("./._0.cls", "mac") + tar_member("./0.CLS", "1") +
                   image_member("train.v1/1.0.jpeg") + tar_member("train.v1/1.0.cls", "2"));
  EXPECT_THAT(labels_of(data), ElementsAre(1, 2));
  EXPECT_THAT(data.notes, IsEmpty());
}

TEST(TarShards, DifferencesFromWebdatasetAreNoted) {
  const OpenedData data =
      open_members(image_member("0.jpg") + image_member("1.a.jpg") + image_member("1.b.jpg") +
                   tar_member("0.cls", "1") + tar_member("2.jpg", "", '2'));
  EXPECT_EQ(data.dataset->size(), 3);
  EXPECT_THAT(data.notes,
              ElementsAre(HasSubstr("1 link"), HasSubstr("a.tar:0)"), HasSubstr("a.tar:1.b.jpg")));
}

TEST(TarShards, ShardsMayBeInSubfolders) {
  const TempFolder folder;
  folder.write("train/0.tar", sample_members("a", "1", 100) + tar_end());
  folder.write("val/1.TAR", sample_members("b", "0", 100) + tar_end());
  folder.write("val/._1.tar", "mac");
  EXPECT_EQ(open_data(folder.path(), plain_images()).dataset->size(), 2);
}

TEST(TarShards, ABadShardIsNamedOrLeftOut) {
  const TempFolder folder;
  folder.write("0.tar", sample_members("a", "1", 100));  // without its end
  folder.write("1.tar", sample_members("b", "0", 100) + tar_end());
  DataOptions options = plain_images();
  EXPECT_THAT(refusal(folder.path(), options), AllOf(HasSubstr("0.tar"), HasSubstr("skip")));
  options.images.on_bad = OnBadImage::skip;
  const OpenedData data = open_data(folder.path(), options);
  EXPECT_EQ(data.dataset->size(), 1);
  ASSERT_EQ(data.bad.size(), 1u);
  EXPECT_EQ(data.bad[0].path, folder / "0.tar");
}

TEST(TarShards, BadImagesAreNamedOrLeftOut) {
  const std::string jpeg = jpeg_file(24, 24);
  const std::string members = tar_member("0.jpg", "no image") + tar_member("1.jpg", "") +
                              tar_member("2.jpg", jpeg.substr(0, jpeg.size() / 2)) +
                              sample_members("3", "1", 100);
  EXPECT_THAT(message_of<Error>([&] { open_members(members); }),
              AllOf(HasSubstr("3 of 4"), HasSubstr("a.tar:0.jpg"), HasSubstr("a.tar:1.jpg")));
  const OpenedData data = open_members(members, OnBadImage::skip);
  EXPECT_THAT(labels_of(data), ElementsAre(1));
  EXPECT_EQ(data.bad.size(), 3u);
  EXPECT_EQ(data.listed, 4);
}

TEST(TarShards, OpensAtMostAsManyImages) {
  std::string members;
  for (int i = 0; i < 8; ++i)
    members += tar_member(std::to_string(i) + ".jpg", i < 4 ? "bad" : jpeg_file(8, 8));
  const TempFolder folder;
  DataOptions options = plain_images();
  options.images.most = 2;
  options.images.on_bad = OnBadImage::skip;
  const OpenedData data = open_data(folder.write("a.tar", members + tar_end()), options);
  EXPECT_EQ(data.listed, 8);
  EXPECT_EQ(data.bad.size() + static_cast<size_t>(data.dataset->size()), 2u);
}

}  // namespace
}  // namespace howmany
