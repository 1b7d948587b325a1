// SPDX-License-Identifier: Apache-2.0
#include "core/host/shared_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/support/message_of.h"

namespace howmany {
namespace {

using testing::AllOf;
using testing::HasSubstr;

#define HM_MATH_CALLS(X) X(hypot) X(fma)
struct Math : SharedLibrary {
  using SharedLibrary::SharedLibrary;
  HM_MATH_CALLS(HM_LIBRARY_CALL)
};

TEST(SharedLibrary, ItsCallsAreMembersOfTheirOwnTypes) {
  const Math math("libm.so.6");
  EXPECT_EQ(math.hypot(3, 4), 5);
  EXPECT_EQ(math.fma(2, 3, 4), 10);
}

TEST(SharedLibrary, IsTakenFromWhereItWasBuiltWithWhenTheLoaderDoesNotKnowIt) {
  EXPECT_EQ(Math("libhm_nowhere.so.1", "libm.so.6").hypot(6, 8), 10);
}

TEST(SharedLibrary, ThatIsNowhereIsRefusedWithAllThatWasTried) {
  EXPECT_THAT(message_of<Error>([] { Math("libhm_nowhere.so.1", "/hm/libhm.so"); }),
              AllOf(HasSubstr("libhm_nowhere.so.1: "), HasSubstr("; /hm/libhm.so: ")));
  // An empty name would open this program itself.
  EXPECT_THAT(message_of<Error>([] { Math("libhm_nowhere.so.1", ""); }),
              HasSubstr("libhm_nowhere.so.1: "));
}

TEST(SharedLibrary, SaysWhichCallItLacks) {
  const SharedLibrary math("libm.so.6");
  EXPECT_EQ(message_of<Error>([&] { math.find<void (*)()>("hm_solve"); }),
            "libm.so.6 has no hm_solve");
}

}  // namespace
}  // namespace howmany
