// SPDX-License-Identifier: Apache-2.0
// The main() of the test programs. In addition to GoogleTest's flags it accepts
// --source=FILE[,FILE...], which runs only the tests of these source files. ctest runs a program
// once per file. A FILE is a name, "shape_test.cpp", or the end of a path, "tensor/shape_test.cpp".
#include <fmt/format.h>
#include <fnmatch.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

bool any_matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

// Returns true if --gtest_filter selects the test. A filter is
// "positive:positive-negative:negative".
bool selected(const std::string& filter, const std::string& name) {
  const size_t dash = filter.find('-');
  const std::string positive = filter.substr(0, dash);
  const std::string negative = dash == filter.npos ? "" : filter.substr(dash + 1);
  return any_matches(split(positive.empty() ? "*" : positive, ':'), name) &&
         !any_matches(split(negative, ':'), name);
}

bool defined_in(const std::string& source, const testing::TestInfo& test) {
  return ("/" + std::string(test.file())).ends_with("/" + source);
}

// Returns a filter with the names of the tests that `sources` define and `filter` selects.
std::string filter_of(const std::vector<std::string>& sources, const std::string& filter) {
  std::string names;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      const std::string name = fmt::format("{}.{}", suite.name(), test.name());
      const bool is_of_source = std::ranges::any_of(
          sources, [&](const std::string& source) { return defined_in(source, test); });
      if (is_of_source && selected(filter, name)) names += (names.empty() ? "" : ":") + name;
    }
  }
  return names;
}

// ctest would not run a test that is defined in another file.
bool all_in_test_files() {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i)
    for (int j = 0; j < all.GetTestSuite(i)->total_test_count(); ++j)
      if (!std::string(all.GetTestSuite(i)->GetTestInfo(j)->file()).ends_with("_test.cpp"))
        return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i], flag = "--source=";
    if (!argument.starts_with(flag)) continue;
    const std::string names =
        filter_of(split(argument.substr(flag.size()), ','), GTEST_FLAG_GET(filter));
    if (names.empty() || !all_in_test_files()) {
      std::cerr << argument << ": no test selected, or a test is not in a *_test.cpp file\n";
      return 2;
    }
    GTEST_FLAG_SET(filter, names);
  }
  return RUN_ALL_TESTS();
}
