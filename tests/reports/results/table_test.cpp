// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/table.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "core/base/fd.h"
#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "core/base/text/names.h"
#include "reports/results/core_use.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

TEST(Table, AlignsColumnsAndLeavesNoTrailingBlanks) {
  Table table({{"n"}, {"mode", Table::Align::kLeft}, {"note", Table::Align::kLeft}});
  table.add({"1", "single", ""});
  table.add({"16", "ddp", "<-"});
  EXPECT_EQ(table.text(),
            " n  mode    note\n"
            " 1  single\n"
            "16  ddp     <-\n");
}

TEST(Table, ColoursWholeLinesOnlyWhenAsked) {
  Table table({{"n"}});
  table.add({"1"}, Table::Style::kBold);
  EXPECT_EQ(table.text(true), "\033[2mn\033[0m\n\033[1m1\033[0m\n");
  EXPECT_EQ(table.text(false), "n\n1\n");
}

TEST(Table, TitlesHoldNoCommandsEither) {
  const Table table({{"\033[31mgloo"}});
  EXPECT_EQ(table.text(), "?[31mgloo\n");
}

TEST(Table, CountsCharactersNotBytes) {
  Table table({{"a"}, {"b"}});
  table.add({"\xC3\xA9", "x"});
  EXPECT_EQ(table.text(), "a  b\n\xC3\xA9  x\n");
}

TEST(Table, RefusesARowOfAnotherLength) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.add({"1"}), std::invalid_argument);
}

TEST(Table, WrapsBetweenWords) {
  EXPECT_EQ(wrapped("one two three", 8, 2), "one two\n  three");
  EXPECT_EQ(wrapped("averyveryverylongword", 8, 2), "averyveryverylongword");
}

TEST(Table, ShowsWhatWouldCommandATerminalOrACiLog) {
  Table table({{"name", Table::Align::kLeft}});
  table.add({"\033[31mred\r\n::error::x\x7f\xC2\x9B"});
  table.add({"::error::x"});
  table.add({"a ##[error]x"});
  EXPECT_EQ(table.text(),
            "name\n"
            "?[31mred??::error::x??\n"
            "?:error::x\n"
            "a ?#[error]x\n");
}

TEST(Table, SentencesHoldNoCommandsOfOthersEither) {
  EXPECT_EQ(wrapped("::error::x\n\033[2Jends", 100, 2), "?:error::x??[2Jends");
  EXPECT_EQ(wrapped("one ::error::x", 8, 2), "one\n  ?:error::x") << "a line begins there";
  EXPECT_EQ(wrapped("\xC3\xA9 a::b", 100, 2), "\xC3\xA9 a::b");
}

TEST(Format, KeepsThreeDigitsAndAUnit) {
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(1.234e-5), "12.3 us");
  EXPECT_EQ(format_seconds(0.0999), "99.9 ms");
  EXPECT_EQ(format_seconds(0.9999), "1.00 s");
  EXPECT_EQ(format_seconds(59.4), "59.4 s");
  EXPECT_EQ(format_seconds(119.8), "2 min 0 s");
  EXPECT_EQ(format_seconds(3 * 3600 + 120), "3 h 2 min");
  EXPECT_EQ(format_seconds(3 * 86400), "3 d");
  EXPECT_EQ(format_count(1281167), "1.28 M");
  EXPECT_EQ(format_count(999.9), "1.00 k");
  EXPECT_EQ(format_count(20), "20");
  EXPECT_EQ(format_hours(0.00436), "0.0044");
  EXPECT_EQ(format_hours(12345), "12345");
}

TEST(Format, StaysShortWhateverTheNumber) {
  for (const double huge : {1e300, -1e300, 1.7e308, -1e9, 1e18, 5e-324}) {
    for (const std::string& text :
         {format_seconds(huge), format_hours(huge), format_count(huge), format_ratio(huge),
          format_percent(huge), format_bytes(huge), format_rate(huge), format_times(huge)}) {
      EXPECT_LE(text.size(), 16u) << text;
    }
  }
  for (const double none : {std::nan(""), HUGE_VAL}) {
    EXPECT_EQ(format_ratio(none), "-");
    EXPECT_EQ(format_percent(none), "- %");
  }
  EXPECT_EQ(format_ratio(1.825), "1.82");
  EXPECT_EQ(format_percent(0.125, 1), "12.5 %");
}

TEST(Table, LongTextIsCutInTheMiddle) {
  EXPECT_EQ(shortened("name", 10), "name");
  EXPECT_EQ(shortened("0123456789abc", 10), "012...9abc");
  EXPECT_EQ(shortened("\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9", 5), "\u00e9...\u00e9");
}

TEST(Format, ReadsCountsAsPeopleWriteThem) {
  EXPECT_EQ(parse_count("--samples", "1.28M"), 1.28e6);
  EXPECT_EQ(parse_count("--samples", "300k"), 3e5);
  EXPECT_EQ(parse_count("--samples", "2e9"), 2e9);
  for (const char* bad : {"", "M", "-3", "0", "nan", "inf", "3x", "3kk", "1e999", "1e99", "2e15"}) {
    EXPECT_THROW(parse_count("--samples", bad), InputError) << bad;
  }
}

TEST(Color, IsForTerminalsUnlessNoColorIsSet) {
  const Fd terminal(posix_openpt(O_RDWR | O_NOCTTY)), file(open("/dev/null", O_WRONLY));
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  EXPECT_TRUE(color_wanted(terminal.get()));
  EXPECT_FALSE(color_wanted(file.get()));
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(color_wanted(terminal.get()));
}

TEST(Suggest, FindsTheNearestOrNothing) {
  const std::vector<std::string> known = {"single", "data_parallel", "ddp"};
  EXPECT_EQ(nearest("dpd", known), "ddp");
  EXPECT_EQ(nearest("data-parallel", known), "data_parallel");
  EXPECT_EQ(nearest("singel", known), "single");
  EXPECT_EQ(nearest("pipeline", known), "");
  EXPECT_EQ(nearest("data", known), "data_parallel");
  EXPECT_EQ(nearest("da", known), "");
  EXPECT_EQ(did_you_mean("xyz", known), "");
}

TEST(CoreUse, IsTheShareOfOthers) {
  EXPECT_DOUBLE_EQ(busy_elsewhere({10, 100, 1}, {16, 110, 3}), 0.4);
  EXPECT_DOUBLE_EQ(busy_elsewhere({10, 100, 1}, {12, 110, 9}), 0);
  EXPECT_DOUBLE_EQ(busy_elsewhere({}, {}), 0);
  EXPECT_GT(read_core_use().total_seconds, 0);
}

}  // namespace
}  // namespace howmany::reports
