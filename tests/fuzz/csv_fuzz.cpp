// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "core/base/error.h"
#include "core/data/formats/csv_reader.h"
#include "tests/support/fuzz_driver.h"

using namespace howmany;

std::vector<std::string> fuzz_seeds() {
  return {"a,b,label\r\n1,2,cat\r\n3,4,dog\r\n", "1,2\n3,4", "\"a,\n\"\"b\"\"\",\"\",\n,,\n",
          "x\n\n\"\"\n", "1;2;3\n"};
}

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::string quoted(std::string_view field) {
  std::string text = "\"";
  for (const char c : field) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

// A record written with every field quoted reads back as the same fields.
void read_again(const std::vector<std::string_view>& fields) {
  std::string text;
  for (const auto& field : fields) text += (text.empty() ? "" : ",") + quoted(field);
  CsvReader again(text);
  require(again.next() && again.fields() == fields && !again.next());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  CsvReader reader(std::string_view(reinterpret_cast<const char*>(data), size));
  int64_t end = -1;
  try {
    while (reader.next()) {
      require(reader.begin() > end && !reader.fields().empty());
      end = reader.begin();
      read_again(reader.fields());
    }
  } catch (const Error&) {
  }
  return 0;
}
