// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/rates.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/base/text/files.h"
#include "core/base/text/log_number.h"
#include "tests/reports/folder.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;

MATCHER_P2(Rate, devices, per_s, "") {
  return arg.devices == devices && std::abs(arg.per_s / per_s - 1) < 1e-9;
}

TEST(Rates, AreReadAsPeopleWriteThem) {
  for (const char* const text :
       {"1=1234.5,2=2400", "2=2400,1=1234.5", "1=1,234.5, 2=2,400", "1 = 1'234.5; 2 = 2.4k",
        "1=1.2345 k 2=2.4K", "1=1234.5 img/s, 2=2400 samples/s", "1=1_234.5,2=0.0024M",
        "1=1.234,5, 2=2.4e3", "1=1234.5,2=2400,"}) {
    const MeasuredRates all = parse_rates(text);
    EXPECT_THAT(all.rates, ElementsAre(Rate(1, 1234.5), Rate(2, 2400.0))) << text;
    EXPECT_FALSE(all.of_batches);
  }
  for (const char* const bad : {"", "1", "1=", "=1", "x=1", "1=2x", "-1=2", "99999999=1", "1.5=2",
                                "1=-2", "1=0", "1=2 3", "1=100,x,2=3", "1=no/such/file"})
    EXPECT_THROW(parse_rates(bad), InputError) << bad;
}

// Batches of one GPU per second: n over the seconds of a step.
TEST(Rates, AreMadeFromSecondsPerStep) {
  for (const char* const text :
       {"1=0.4s,8=0.5s", "1=400ms, 8=500 ms", "1=0.4 s/it,8=0.5 s/step", "1=2.5it/s,8=2 it/s"}) {
    const MeasuredRates all = parse_rates(text);
    EXPECT_THAT(all.rates, ElementsAre(Rate(1, 2.5), Rate(8, 16.0))) << text;
    EXPECT_TRUE(all.of_batches);
  }
  EXPECT_THROW(parse_rates("1=0.4s,8=16"), InputError);
}

TEST(Rates, OfATableNeedANumberOfGpusAndARate) {
  for (const char* const text :
       {"n,samples_per_s\n1,100\n2,190\n", "1,100\n2,190", "gpus;throughput\r\n2;190\r\n1;100\r\n",
        "model,n_gpus,images/s\nx,1,100\nx,2,190\n", "# n rate\n1 100\n2 190\n", "1\t100\n2\t190\n",
        "n,rate\n1,90\n1,100\n1,5000\n2,190\n", "\xef\xbb\xbfN,img/s\n1,\"100\"\n2,\"190.0\"\n"}) {
    EXPECT_THAT(rates_in_table(text, "t").rates, ElementsAre(Rate(1, 100), Rate(2, 190))) << text;
  }
  EXPECT_THAT(rates_in_table("n,rate\n1,\"1,234.5\"\n", "t").rates, ElementsAre(Rate(1, 1234.5)));
  const MeasuredRates steps = rates_in_table("n,step_s\n1,0.5\n4,0.5\n", "t");
  EXPECT_THAT(steps.rates, ElementsAre(Rate(1, 2), Rate(4, 8)));
  EXPECT_TRUE(steps.of_batches);
  for (const char* const bad : {"", "n,rate\n", "a,b,c\n1,2,3\n", "n,rate\nx,2\n", "n,rate\n1\n",
                                ":::MLLOG {\"key\": \"x\"}\n"})
    EXPECT_THROW(rates_in_table(bad, "t"), InputError) << bad;
}

std::string event(const std::string& key, double ms, const std::string& value,
                  const std::string& metadata = "{}") {
  return "0: :::MLLOG {\"namespace\": \"\", \"time_ms\": " + std::to_string(ms) + ", \"key\": \"" +
         key + "\", \"value\": " + value + ", \"metadata\": " + metadata + "}\n";
}

TEST(Rates, AreReadFromTheLinesOfMlPerfsLogger) {
  EXPECT_DOUBLE_EQ(rate_in_mllog(event("tracked_stats", 1, "{\"throughput\": 90.0}") + "text\n" +
                                     event("tracked_stats", 2, "{\"throughput\": 110.0}"),
                                 "t"),
                   100);
  EXPECT_DOUBLE_EQ(rate_in_mllog(event("block_start", 1000, "null", "{\"samples_count\": 100}") +
                                     event("block_stop", 3000, "null", "{\"samples_count\": 500}"),
                                 "t"),
                   200);
  EXPECT_DOUBLE_EQ(
      rate_in_mllog(event("train_samples", 0, "1000") + event("epoch_start", 1000, "null") +
                        event("epoch_stop", 6000, "null") + event("epoch_start", 6000, "null") +
                        event("epoch_stop", 11000, "null"),
                    "t"),
      200);
  EXPECT_THROW(rate_in_mllog(":::MLLOG {\n:::MLLOG {\"key\": 3}\n", "t"), InputError);

  const TemporaryFolder folder;
  const std::string log = folder / "8.log", table = folder / "rates.csv";
  write_text(log, event("tracked_stats", 1, "{\"throughput\": 800}"));
  write_text(table, "n,rate\n1,120\n");
  EXPECT_THAT(parse_rates("1=120,8=" + log).rates, ElementsAre(Rate(1, 120), Rate(8, 800)));
  EXPECT_THAT(parse_rates(table).rates, ElementsAre(Rate(1, 120)));
}

TEST(LogNumber, SeparatorsOfThousandsAndDecimals) {
  const auto value = [](const char* text) {
    const auto number = leading_number(text);
    return number && number->rest.empty() ? number->value : -1;
  };
  EXPECT_EQ(value("1,234.5"), 1234.5);
  EXPECT_EQ(value("1,234"), 1234);
  EXPECT_EQ(value("12,345,678"), 12345678);
  EXPECT_EQ(value("1.234,5"), 1234.5);
  EXPECT_EQ(value("1.234.567"), 1234567);
  EXPECT_EQ(value("1.234"), 1.234);
  EXPECT_EQ(value("0,42"), 0.42);
  EXPECT_EQ(value("0,123"), 0.123);
  EXPECT_EQ(value("3,14"), 3.14);
  EXPECT_EQ(value("1 234.5"), 1234.5);
  EXPECT_EQ(value("1\u202f234"), 1234);
  EXPECT_EQ(value(" 2.5k"), 2500);
  EXPECT_EQ(value("2.5 M"), 2.5e6);
  EXPECT_EQ(value("1e-3"), 0.001);
  EXPECT_EQ(value("1.5E+3"), 1500);
  for (const char* const bad : {"", "k", "-1", "1,23,4", "1,2345.6", "1234,567.8", "x1"})
    EXPECT_LT(value(bad), 0) << bad;
}

}  // namespace
}  // namespace howmany::reports
