// SPDX-License-Identifier: Apache-2.0
// Tests the page of a summary: it is complete, safe for untrusted summaries, and shows flags.
#include "reports/html/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/schema/labels.h"
#include "core/base/text/escape.h"
#include "reports/html/chart.h"
#include "reports/html/groups.h"
#include "tests/reports/examples.h"

namespace howmany::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

// Returns the tag name at `at`.
std::string tag_at(const std::string& html, size_t at) {
  return html.substr(at, html.find_first_of(" >\n", at) - at);
}

// Returns the first tag that is left open or closes the wrong element, or "" if the page is valid.
std::string unbalanced(const std::string& html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != html.npos; at = html.find('<', at + 1)) {
    const std::string tag = tag_at(html, at + 1);
    const size_t end = html.find('>', at);
    if (end == html.npos) return "cut: " + tag;
    if (tag[0] == '!' || tag == "meta" || html[end - 1] == '/') continue;
    if (tag[0] != '/') {
      open.push_back(tag);
      continue;
    }
    if (open.empty() || open.back() != tag.substr(1)) return tag;
    open.pop_back();
  }
  return open.empty() ? "" : open.back();
}

size_t count(const std::string& text, const std::string& part) {
  size_t times = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++times;
  return times;
}

Summary hostile(const std::string& text) {
  Summary summary = example_curve();
  summary.context = {{text, text}, {"howmany_date", text}, {"howmany_request", {{text, text}}}};
  summary.answer["gpus"]["because"] = text;
  summary.answer["gpus"]["notes"] = {text};
  summary.answer[text] = {{"because", text}, {"recommended", text}};
  for (Measurement& m : summary.measurements) {
    m.parameters["mode"] = m.parameters["model"] = m.parameters[text] = text;
    m.flags.push_back(text);
    m.metrics["speedup"].unit = text;
  }
  summary.measurements.push_back(
      {text, text, {{text, text}}, {{text, {1, text, {}, {}, 1, text}}}, {text + ": " + text}});
  return summary;
}

Summary loader_curve() {
  Summary summary;
  nlohmann::json table = nlohmann::json::array();
  for (const int workers : {1, 2, 4})
    table.push_back({{"workers", workers},
                     {"runs", 2},
                     {"samples_per_s", 100.0 * workers},
                     {"samples_per_s_low", 90.0 * workers},
                     {"samples_per_s_high", 110.0 * workers},
                     {"failed", ""}});
  summary.answer["workers"] = {{"recommended", 2},
                               {"because", "Use 2 workers."},
                               {"devices", 2},
                               {"demand", {{"samples_per_s_per_device", 150}}},
                               {"table", table}};
  return summary;
}

Summary collectives() {
  Summary summary;
  for (const char* backend : {"local", "gloo"})
    for (const int bytes : {1024, 65536}) {
      Measurement m{"backend", std::string("all_reduce/") + backend, {}, {}, {}};
      m.parameters = {{"bytes", std::to_string(bytes)}, {"devices", "2"}, {"dtype", "f32"}};
      m.metrics["median_s"] = {1e-6 * bytes, "s", 0.9e-6 * bytes, 1.1e-6 * bytes, 30, "iterations"};
      summary.measurements.push_back(m);
    }
  return summary;
}

TEST(ThePage, IsWhole) {
  for (const Summary& summary : {example_curve(), example_summary(), loader_curve(), collectives(),
                                 hostile("<b>&\"' --> ]]> </style><p>")})
    EXPECT_EQ(unbalanced(to_html(summary)), "");
}

TEST(ThePage, IsThereForAnEmptySummary) {
  const std::string html = to_html(Summary{});
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_THAT(html, HasSubstr("This summary holds no answer."));
  EXPECT_THAT(html, HasSubstr("<html lang=\"en\">"));
  EXPECT_THAT(html, HasSubstr("charset=\"utf-8\""));
}

TEST(ThePage, FetchesNothingAndRunsNothing) {
  for (const Summary& summary :
       {example_curve(), collectives(), hostile("http://x.y/<script src=x>")}) {
    std::string html = to_html(summary);
    EXPECT_THAT(html, HasSubstr("content=\"default-src 'none'; style-src 'unsafe-inline'\""));
    EXPECT_EQ(count(html, "href="), count(html, "href=\"#"));
    for (const char* outward : {"<script", "<img", "<link", "<iframe", "url(", "@import"})
      EXPECT_THAT(html, Not(HasSubstr(outward)));
  }
}

TEST(ThePage, HoldsNoMarkupOfTheSummary) {
  const std::string html = to_html(hostile("<i x=\"y\" z='w'>&amp;"));
  EXPECT_THAT(html, Not(HasSubstr("<i x")));
  EXPECT_THAT(html, Not(HasSubstr("x=\"y\"")));
  EXPECT_THAT(html, Not(HasSubstr("z='w'")));
  EXPECT_THAT(html, HasSubstr("&lt;i x=&quot;y&quot; z=&#39;w&#39;&gt;&amp;amp;"));
}

TEST(ThePage, HoldsNoControlCharacters) {
  const std::string html = to_html(hostile(std::string("a\x1b[31m\0\x07\x7f\xff\xc2\x9b", 12)));
  for (const char c : html) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c != 0x7f)) << int{c};
}

TEST(ThePage, TellsTheAnswerBeforeChartsBeforeTablesBeforeHowItWasMeasured) {
  Summary summary = example_curve();
  summary.context = {{"cpu", "a CPU"}};
  summary.answer["gpus"]["because"] = "Use 2 GPUs.";
  const std::string html = to_html(summary);
  const auto at = [&](const char* text) { return html.find(text); };
  EXPECT_LT(at("Use 2 GPUs."), at("<svg"));
  EXPECT_LT(at("<svg"), at("<table"));
  EXPECT_LT(at("<table"), at("How it was measured"));
  EXPECT_LT(at("How it was measured"), at("id=\"marks\""));
  EXPECT_LT(at("id=\"marks\""), html.size());
}

TEST(ThePage, TellsEveryModelsAnswerAndItsNotes) {
  Summary summary = example_curve();
  for (const char* model : {"mlp", "vgg"})
    summary.answer["gpus"]["cases"].push_back({{"model", model},
                                               {"recommended", 2},
                                               {"certain", false},
                                               {"because", std::string("So it is of ") + model},
                                               {"notes", {std::string("A note on ") + model}}});
  const std::string html = to_html(summary);
  for (const char* told : {"So it is of mlp", "A note on mlp", "So it is of vgg", "A note on vgg"})
    EXPECT_THAT(html, HasSubstr(told));
  EXPECT_EQ(count(html, "(uncertain)"), 2u);
}

nlohmann::json plan_row(int devices, double seconds, bool best) {
  return {{"devices", devices},
          {"mode", "<ddp>"},
          {"backend", "gloo"},
          {"samples_per_s", 1e6 / seconds},
          {"speedup", 1.5},
          {"efficiency", 0.75},
          {"efficiency_low", 0.7},
          {"efficiency_high", 0.8},
          {"seconds_to_train", seconds},
          {"device_hours_to_train", seconds * devices / 3600},
          {"best", best},
          {"valid", true}};
}

TEST(ThePage, TellsTimeAndDeviceHoursAsTheTerminalDoes) {
  Summary summary = example_curve();
  summary.answer["gpus"] = {{"because", "Use 2 GPUs."},
                            {"recommended", 2},
                            {"samples_to_train", 1e6},
                            {"table", {plan_row(1, 7200, false), plan_row(2, 3600, true)}}};
  const std::string html = to_html(summary);
  EXPECT_EQ(unbalanced(html), "");
  for (const char* told : {"time for 1 M samples", "device-hours", "<td>1 h 0 min</td>",
                           "&lt;ddp&gt;", "<td>0.70 to 0.80</td>"})
    EXPECT_THAT(html, HasSubstr(told));
  EXPECT_EQ(count(html, "<tr class=\"chosen\">"), 1u);
}

TEST(ThePage, HasReadableColumns) {
  const std::string html = to_html(collectives());
  EXPECT_THAT(html, HasSubstr(">median time</th>"));
  EXPECT_THAT(html, Not(HasSubstr("median_s")));
  for (const char* key : {"samples_per_s", "busbw_bytes_per_s", "stall_fraction", "first_batch_s",
                          "cores_per_device", "device_list"})
    EXPECT_THAT(label_of(key), Not(HasSubstr("_"))) << key;
  EXPECT_EQ(label_of("samples_per_s"), "samples/s");
  EXPECT_EQ(label_of("first_batch_s"), "first batch");
  EXPECT_EQ(label_of("_s"), " s");
}

TEST(ThePage, MarksWhatIsNotClean) {
  Summary summary = example_curve();
  EXPECT_THAT(to_html(summary), Not(HasSubstr("class=\"hollow\"")));
  summary.measurements.back().flags = {"oversubscribed", "failed: <peer> gone"};
  summary.measurements[1].flags = {"not converged"};
  const std::string html = to_html(summary);
  EXPECT_EQ(count(html, "<tr class=\"marked\""), 2u);
  EXPECT_THAT(html, HasSubstr("<td class=\"mark\">oversubscribed; failed: &lt;peer&gt; gone</td>"));
  EXPECT_EQ(count(html, "class=\"hollow\""), 1u);  // failed measurements have no point
  EXPECT_LT(html.find("Of 4 measurements: 1 failed, 1 not converged, 1 oversubscribed"),
            html.find("<table"));
}

TEST(ThePage, SaysWhatDevicesTheseWereAsTheTerminalDoes) {
  Summary summary = example_curve();
  EXPECT_THAT(to_html(summary), Not(HasSubstr("CPU core(s) here")));
  for (Measurement& m : summary.measurements) {
    m.parameters["device_list"] = "cpu:0,cpu:1";
    m.parameters["cores_per_device"] = "1";
  }
  EXPECT_THAT(to_html(summary), HasSubstr("A device is 1 CPU core(s) here: "));
  for (Measurement& m : summary.measurements) m.parameters["device_list"] = "cpu:0,cuda:0";
  EXPECT_THAT(to_html(summary), HasSubstr("cpu:0,cuda:0 are not alike"));
}

TEST(ThePage, HasEveryValueWithItsUnitIntervalAndNumber) {
  EXPECT_THAT(to_html(example_curve()),
              HasSubstr("<td>100 ms<small>90 ms to 110 ms; n = 3 rounds</small></td>"));
  EXPECT_THAT(to_html(loader_curve()),
              HasSubstr("<td>200/s<small>180/s to 220/s; n = 2 runs</small></td>"));
}

TEST(ThePage, LeavesOutAndSaysSoWhereThereIsTooMuch) {
  Summary summary;
  for (int i = 0; i < 20000; ++i) {
    Measurement m{"backend", "op" + std::to_string(i % 100) + "/x", {}, {}, {"odd"}};
    m.parameters["bytes"] = std::to_string(i);
    m.parameters["long"] = std::string(2000, 'x') + std::to_string(i);
    m.metrics["median_s"] = {1.0 + i, "s", {}, {}, 1, "iterations"};
    summary.measurements.push_back(m);
  }
  const std::string html = to_html(summary);
  EXPECT_LT(html.size(), size_t{8} << 20);
  EXPECT_LE(count(html, "<tr class=\"marked\""), kMaxHtmlRows);
  EXPECT_THAT(html, HasSubstr("200 rows are left out"));
  EXPECT_THAT(html, HasSubstr("8000 measurements of further tables"));
  EXPECT_THAT(html, HasSubstr("xxx..."));
}

TEST(TheCharts, ShowThePartsOfProfiledSteps) {
  Summary summary = example_curve();
  EXPECT_THAT(to_html(summary), Not(HasSubstr("parts of a step")));
  Measurement& m = summary.measurements.back();
  m.parameters["mode"] = "<ddp>";
  m.metrics["profile_compute_s"].value = 0.06;
  m.metrics["profile_comm_s"].value = 0.03;
  m.metrics["profile_data_s"].value = NAN;
  m.metrics["profile_host_s"].value = 0.01;
  const std::string html = to_html(summary);
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(count(html, "parts of a step"), 1u);
  EXPECT_EQ(count(html, "<rect class=\"part"), 2 * 3u);  // and the legend
  EXPECT_THAT(html, HasSubstr("compute 60 %, communication 30 %, none of these 10 %\">"));
  EXPECT_THAT(html, HasSubstr("width=\"288.0\""));  // 60 % of the picture
  EXPECT_THAT(html, Not(HasSubstr("<ddp>")));
}

Summary explained() {
  Summary summary = example_curve();
  const auto part = [](const char* name, double seconds) {
    return nlohmann::json{{"part", name}, {"seconds", seconds}, {"error_s", 1e-4}};
  };
  nlohmann::json two = {{"devices", 2}, {"model", "<mlp>"}, {"mode", "<ddp>"}, {"backend", "gloo"}};
  two.update({{"step_s", 0.04}, {"ideal_s", 0.02}, {"lost_s", 0.02}, {"refused", nullptr}});
  two["parts"] = {part("exchange", 0.012), part("data", 0.006), part("rest", 0.002)};
  two["help"] = {{{"what", "bf16_gradients"},
                  {"gain_s", 0.005},
                  {"error_s", 2e-4},
                  {"evidence", "replayed"},
                  {"paste", "model.register_comm_hook(None, <hook>)"}}};
  nlohmann::json four = two;
  four.update(
      {{"devices", 4}, {"refused", "ranks <disagree>"}, {"parts", nlohmann::json::array()}});
  four["help"] = nlohmann::json::array();
  summary.answer["why"] = {
      {"because", "Gradients <arrive> late."}, {"recording", 0.0004}, {"counts", {two, four}}};
  return summary;
}

TEST(TheLostTime, IsABarOfPartsForEachCount) {
  const std::string html = to_html(explained());
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_THAT(html, HasSubstr("Gradients &lt;arrive&gt; late."));
  EXPECT_EQ(count(html, "class=\"part ideal\""), 2u + 1u);  // and the legend
  EXPECT_EQ(count(html, "class=\"part s1\""), 1u + 1u);
  EXPECT_EQ(count(html, "class=\"part rest\""), 2u + 1u);
  EXPECT_THAT(html, HasSubstr("width=\"240.0\""));  // the ideal is half of the step
  EXPECT_THAT(html, HasSubstr("<title>waiting for data: 6 ms</title>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"time\">12 ms<small>30 %; \u00b1 100 us</small></td>"));
  for (const char* markup : {"<ddp>", "<mlp>", "<arrive>", "<disagree>", "<hook>"})
    EXPECT_THAT(html, Not(HasSubstr(markup)));
}

TEST(TheLostTime, IsNotDividedIfItWasRefused) {
  const std::string html = to_html(explained());
  EXPECT_THAT(html, HasSubstr("devices 4: 40 ms, useful 50 %, rest 50 %\">"));
  EXPECT_THAT(html, HasSubstr("ranks &lt;disagree&gt;"));
}

TEST(TheLostTime, HasTheChangesThatWouldHelp) {
  const std::string html = to_html(explained());
  EXPECT_THAT(html, HasSubstr("<td class=\"time\">5 ms<small>12 %; \u00b1 200 us</small></td>"));
  EXPECT_THAT(html, HasSubstr("<code>model.register_comm_hook(None, &lt;hook&gt;)</code>"));
  EXPECT_THAT(to_html(example_curve()), Not(HasSubstr("would help")));
}

TEST(TheLostTime, OfAHostileAnswerIsAPage) {
  for (const nlohmann::json& bad :
       {nlohmann::json(3), nlohmann::json("<b>"), nlohmann::json::array({1}),
        nlohmann::json{{"counts", 7}}, nlohmann::json{{"counts", {1, "<b>", nullptr}}},
        nlohmann::json{{"counts", {{{"parts", {3, {{"part", 4}}}}, {"help", {1}}}}}},
        nlohmann::json{{"counts", {{{"ideal_s", 1e300}, {"step_s", -1}, {"lost_s", "x"}}}}}}) {
    Summary summary = example_curve();
    summary.answer["why"] = bad;
    const std::string html = to_html(summary);
    EXPECT_EQ(unbalanced(html), "") << bad;
    EXPECT_THAT(html, Not(HasSubstr("<b>"))) << bad;
  }
}

TEST(TheCharts, AreOneForEachOperationWithALineForEachBackend) {
  const std::string html = to_html(collectives());
  EXPECT_EQ(count(html, "<svg"), 1u);
  EXPECT_EQ(count(html, "class=\"full\""), 4u + 2u);  // and one each in the legend
  EXPECT_EQ(count(html, "class=\"bar\""), 4u);
  for (const char* told : {">bytes<", ">median time<", ">local<", ">gloo<"})
    EXPECT_THAT(html, HasSubstr(told));
}

TEST(TheCharts, ShowTheIdealAndTheDemand) {
  EXPECT_THAT(to_html(example_curve()), HasSubstr(">ideal: as many times as devices<"));
  EXPECT_THAT(to_html(loader_curve()), HasSubstr(">demand<"));
  Summary summary = loader_curve();
  summary.answer["workers"]["demand"] = nullptr;
  EXPECT_THAT(to_html(summary), Not(HasSubstr(">demand<")));
}

TEST(TheCharts, HaveNoPointForWhatIsNotDefined) {
  Summary summary = example_curve();
  const size_t points = count(to_html(summary), "class=\"full\"");
  summary.measurements[2].metrics["speedup"] = {std::nan(""), "ratio", {}, {}, 0, ""};
  summary.measurements[3].metrics["speedup"].low = 0.5;
  summary.measurements[3].metrics["speedup"].high = std::nan("");
  const std::string html = to_html(summary);
  EXPECT_EQ(count(html, "class=\"full\""), points - 1);
  const size_t svg = html.find("<svg");
  const std::string chart = html.substr(svg, html.find("</svg>") - svg);
  for (const char* bad : {"nan", "inf"}) EXPECT_THAT(chart, Not(HasSubstr(bad)));
}

TEST(TheCharts, DrawWhatNobodyMeasuredWithoutANumberBeyondThePicture) {
  constexpr double kHuge = std::numeric_limits<double>::max();
  for (const auto scale :
       {ChartAxis::Scale::kLinear, ChartAxis::Scale::kLog2, ChartAxis::Scale::kLog10})
    for (const double value : {0.0, 5e-324, 1e-18, 1.0, 1e18, kHuge, -1.0}) {
      const auto text = [](double) { return std::string("t"); };
      const Chart chart{"c",
                        {"x", scale, text, true},
                        {"y", scale, text, false},
                        {{"s", {{value, value, -kHuge, kHuge, false}, {1, 1, 0, 2, true}}, false}}};
      const std::string svg = to_svg(chart);
      EXPECT_EQ(unbalanced(svg), "");
      EXPECT_LT(svg.size(), 8000u);
      for (const char* bad : {"nan", "inf"}) EXPECT_THAT(svg, Not(HasSubstr(bad)));
    }
}

TEST(AnEscapedText, IsCutBetweenCharactersAndSaysSo) {
  EXPECT_EQ(escaped("abcdef", 4), "abcd...");
  EXPECT_EQ(escaped("abcd", 4), "abcd");
  EXPECT_EQ(escaped("abc\xc3\xa4", 4), "abc...");
  EXPECT_EQ(escaped("\xc3\xa4<", 9), "\xc3\xa4&lt;");
  EXPECT_EQ(escaped("a\xc3", 9), "a?");
}

}  // namespace
}  // namespace howmany::reports
