// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/options.h"

namespace howmany {
namespace {

TEST(Options, AListMayBeAValue) {
  const NamedOptions given =
      parse_named("mode", "model:placement=0-3:cpu:0,4-9:cpu:1,micro_batches=4");
  EXPECT_EQ(given.name, "model");
  EXPECT_EQ(given.options, (Options{{"placement", "0-3:cpu:0,4-9:cpu:1"}, {"micro_batches", "4"}}));
  EXPECT_EQ(parse_named("mode", text_of(given)).options, given.options);
  EXPECT_EQ(text_of({"ddp", {}}), "ddp");
}

TEST(Options, WhatIsNeitherAnOptionNorMoreOfAListIsRefused) {
  EXPECT_THROW(parse_named("mode", "model:placement=0:cpu:0,rest"), std::invalid_argument);
  EXPECT_THROW(parse_named("mode", "model:4-9:cpu:1"), std::invalid_argument);
}

}  // namespace
}  // namespace howmany
