// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/utf8.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace howmany {
namespace {

TEST(VisibleControls, EveryTextBecomesValidJson) {
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b) {
      const std::string text{'x', static_cast<char>(a), static_cast<char>(b), 'y'};
      const std::string visible = with_visible_controls(text);
      EXPECT_NO_THROW(nlohmann::json(visible).dump()) << a << ' ' << b;
      for (const char c : visible) EXPECT_TRUE(c < 0 || c >= 0x20);
    }
}

TEST(VisibleControls, NamesStayReadable) {
  EXPECT_EQ(with_visible_controls("esc\x1b[2J"), "esc\\x1b[2J");
  EXPECT_EQ(with_visible_controls("latin-\xe4"), "latin-\\xe4");
  EXPECT_EQ(with_visible_controls("umlaut-\xc3\xa4\nb"), "umlaut-\xc3\xa4\\x0ab");
  EXPECT_EQ(with_visible_controls("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
}

}  // namespace
}  // namespace howmany
