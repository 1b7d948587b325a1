// SPDX-License-Identifier: Apache-2.0
#include "reports/results/record.h"

#include <gmock/gmock.h>

#include "core/base/text/csv.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "tests/reports/examples.h"
#include "tests/reports/folder.h"
#include "tests/support/message_of.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;

nlohmann::json example_json() { return nlohmann::json(to_json(example_summary())); }

TEST(Record, ReadsBackWhatItWrote) {
  const std::string text = dump_json(to_json(example_summary()));
  const Summary back = summary_from_json(parse_json(text, "x"), "x");
  EXPECT_EQ(dump_json(to_json(back)), text);
  EXPECT_EQ(back.measurements[0].metrics.at("median_s").value, 0.1 + 0.2);
  EXPECT_TRUE(std::isnan(back.measurements[0].metrics.at("busbw_bytes_per_s").value));
}

TEST(Record, BeginsWithItsSchema) {
  EXPECT_EQ(dump_json(to_json(Summary())).find("{\n  \"schema\": \"howmany.summary/1\""), 0u);
}

TEST(Record, NamesThePlaceOfWhatIsWrong) {
  auto json = example_json();
  json["measurements"][0]["metrics"]["median_s"]["low"] = "fast";
  EXPECT_EQ(message_of<InputError>([&] { summary_from_json(json, "s.json"); }),
            "[s.json] measurements[0].metrics.median_s.low: expected a number, found string");
}

TEST(Record, RefusesAnotherSchema) {
  auto json = example_json();
  json["schema"] = "howmany.summary/2";
  EXPECT_THAT(message_of<InputError>([&] { summary_from_json(json, "s"); }),
              HasSubstr("howmany.summary/2"));
}

TEST(Record, RefusesEveryMissingMember) {
  const auto whole = example_json();
  for (const char* key : {"schema", "context", "answer", "measurements"}) {
    auto json = whole;
    json.erase(key);
    EXPECT_THAT(message_of<InputError>([&] { summary_from_json(json, "s"); }), HasSubstr(key));
  }
  for (const char* key : {"suite", "case", "parameters", "metrics", "flags"}) {
    auto json = whole;
    json["measurements"][0].erase(key);
    EXPECT_THAT(message_of<InputError>([&] { summary_from_json(json, "s"); }), HasSubstr(key));
  }
}

TEST(Record, RefusesAnIntervalUpsideDown) {
  auto json = example_json();
  json["measurements"][0]["metrics"]["median_s"]["low"] = 7;
  EXPECT_THAT(message_of<InputError>([&] { summary_from_json(json, "s"); }),
              HasSubstr("low is above high"));
}

TEST(Record, RefusesTimesAndRatesBelowZero) {
  for (const char* name : {"median_s", "busbw_bytes_per_s", "speedup", "loss"}) {
    auto json = example_json();
    auto& metric = json["measurements"][0]["metrics"][name];
    if (metric.is_null()) metric = {{"unit", ""}, {"n", 1}};
    metric["value"] = -0.5;
    const auto read = [&] { summary_from_json(json, "s"); };
    if (name == std::string("loss")) {
      EXPECT_NO_THROW(read());
      continue;
    }
    const std::string place = std::string("[s] measurements[0].metrics.") + name + ".value: ";
    EXPECT_EQ(message_of<InputError>(read), place + "is negative");
  }
}

TEST(Json, RefusesDepthThatWouldOverflowTheStack) {
  const std::string deep(1'000'000, '[');
  EXPECT_THAT(message_of<InputError>([&] { parse_json(deep, "deep"); }),
              HasSubstr("nested deeper"));
}

TEST(Json, TellsLineAndColumnOfABrokenText) {
  EXPECT_THAT(message_of<InputError>([&] { parse_json("{\n  \"a\": tru }", "x.json"); }),
              ::testing::AllOf(HasSubstr("[x.json]"), HasSubstr("line 2")));
}

TEST(Json, WritesWhatIsNotUtf8) {
  EXPECT_THAT(dump_json({{"a", "\xff"}}), HasSubstr("\xEF\xBF\xBD"));
}

TEST(Csv, QuotesByRfc4180AndKeepsEveryDigit) {
  Summary summary = example_summary();
  summary.measurements[0].parameters["note"] = "a,\"b\"\nc";
  const std::string csv = to_csv(summary);
  EXPECT_EQ(
      csv.find("suite,case,backend,devices,mode,model,note,metric,value,unit,low,high,n,basis,"
               "flags\r\n"),
      0u);
  EXPECT_THAT(csv, HasSubstr("speedup,ddp/mlp,gloo,2,ddp,mlp,\"a,\"\"b\"\"\nc\",median_s,"
                             "0.30000000000000004,s,0.29,0.31,3,rounds,not converged\r\n"));
  EXPECT_THAT(csv, HasSubstr("busbw_bytes_per_s,,B/s,,,0,,not converged\r\n"));
}

TEST(Csv, TextIsNoFormulaAndNumbersStay) {
  EXPECT_EQ(csv_text("=cmd|calc!A0"), "'=cmd|calc!A0");
  EXPECT_EQ(csv_text("@x"), "'@x");
  EXPECT_EQ(csv_text("-x"), "'-x");
  EXPECT_EQ(csv_text("\t=1"), "'?=1");
  EXPECT_EQ(csv_text("\r=1"), "'?=1");
  EXPECT_EQ(csv_text("-1.5"), "-1.5");
  EXPECT_EQ(csv_text("a=b\nc"), "a=b\nc");
  EXPECT_EQ(csv_text("\033[2J\u009B"), "?[2J?");
  EXPECT_EQ(csv_text(""), "");
}

TEST(Json, RefusesAKeyThatAppearsTwiceInAnObject) {
  for (const char* bad : {R"({"a": 1, "a": 1})", R"({"x": [{"b": 1, "a": {"k": 1, "k": 2}}]})",
                          R"({"a": {"a": 1}, "a": 2})"}) {
    EXPECT_THROW(parse_json(bad, "f"), InputError) << bad;
  }
  EXPECT_NO_THROW(parse_json(R"([{"a": {"a": 1}, "b": {"a": 1}}, {"a": 1}])", "f"));
  EXPECT_THAT(message_of<InputError>(
                  [&] { parse_json(R"({"x": [{"b": 1, "a": {"k": 1, "k": 2}}]})", "file.json"); }),
              AllOf(HasSubstr("file.json"), HasSubstr("x.a.k")));
}

TEST(Json, EscapesControlCharacters) {
  EXPECT_EQ(dump_json_line({{"a", "\033[2J\u009B\x7f\u00e9"}}),
            "{\"a\":\"\\u001b[2J\\u009b\\u007f\u00e9\"}\n");
}

TEST(Csv, KeepsARowForWhatFailed) {
  Summary summary;
  summary.measurements = {{"speedup", "ddp/mlp", {{"devices", "4"}}, {}, {"failed: peer gone"}}};
  EXPECT_EQ(to_csv(summary),
            "suite,case,devices,metric,value,unit,low,high,n,basis,flags\r\n"
            "speedup,ddp/mlp,4,,,,,,0,,failed: peer gone\r\n");
}

TEST(Files, ReplaceTheOldTextAndLeaveNothingElse) {
  const TemporaryFolder folder;
  write_text(folder / "a", "old");
  write_text(folder / "a", "new");
  EXPECT_EQ(contents(folder / "a"), "new");
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(Files, KeepTheOldTextWhenTheNewCannotBeWritten) {
  EXPECT_THAT(message_of<InputError>([] { write_text("/dev/full/x", "text"); }),
              HasSubstr("cannot write"));
  EXPECT_THAT(message_of<InputError>([] { write_text("/nowhere/at/all", "text"); }),
              HasSubstr("/nowhere/at/all"));
}

TEST(Files, SayThatTheDiskIsFullBeforeAnythingIsMeasured) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<InputError>([&] { prepare_folder(folder.path(), int64_t{1} << 62); }),
              ::testing::AllOf(HasSubstr("disk full"), HasSubstr("another --out")));
}

TEST(Files, SayThatTheFolderCannotBeWritten) {
  EXPECT_THAT(message_of<InputError>([] { prepare_folder("/proc/howmany"); }),
              HasSubstr("/proc/howmany"));
  const TemporaryFolder folder;
  write_text(folder / "file", "x");
  EXPECT_THAT(message_of<InputError>([&] { prepare_folder(folder / "file"); }),
              HasSubstr("cannot"));
}

TEST(Files, RefuseWhatIsTooLargeOrNotAFile) {
  const TemporaryFolder folder;
  write_text(folder / "a", "12345");
  EXPECT_THAT(message_of<InputError>([&] { read_text(folder / "a", 4); }),
              HasSubstr("larger than 4 bytes"));
  EXPECT_THAT(message_of<InputError>([&] { read_text(folder.path()); }), HasSubstr("not a file"));
  EXPECT_THAT(message_of<InputError>([&] { read_summary(folder / "none"); }),
              HasSubstr("No such file"));
}

}  // namespace
}  // namespace howmany::reports
