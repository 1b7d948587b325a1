// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/private_folder.h"
#include "tests/support/message_of.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;

class WriteText : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      all.push_back(entry.path().filename());
    return all;
  }

 private:
  const PrivateFolder folder_;
};

TEST_F(WriteText, ReplacesAFileAndLeavesNothingElse) {
  write_text(path("a"), "old");
  write_text(path("a"), "new");
  EXPECT_EQ(read_text(path("a")), "new");
  EXPECT_THAT(names(), testing::ElementsAre("a"));
}

TEST_F(WriteText, KeepsALinkAndReplacesItsTarget) {
  write_text(path("target"), "old");
  fs::create_symlink("target", path("link"));
  write_text(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_text(path("target")), "new");
}

// A link of a guessable temporary name must not lead the write to another file.
TEST_F(WriteText, DoesNotFollowALinkOfTheTemporaryName) {
  write_text(path("victim"), "untouched");
  fs::create_symlink("victim", path("a.tmp"));
  write_text(path("a"), "text");
  EXPECT_EQ(read_text(path("victim")), "untouched");
  EXPECT_EQ(read_text(path("a")), "text");
}

TEST_F(WriteText, WritesIntoAFifo) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] {
    std::ifstream file(path("fifo"));
    got.assign(std::istreambuf_iterator<char>(file), {});
  });
  write_text(path("fifo"), "text");
  reader.join();
  EXPECT_EQ(got, "text");
  EXPECT_TRUE(fs::is_fifo(path("fifo")));
}

TEST_F(WriteText, WritesIntoADevice) {
  fs::create_symlink("/dev/null", path("device"));
  write_text(path("device"), "text");
  EXPECT_TRUE(fs::is_symlink(path("device")));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(WriteText, LeavesOneWholeTextIfTwoWrite) {
  const std::string ones(100'000, '1'), twos(100'000, '2');
  const auto write = [&](const std::string& text) {
    for (int i = 0; i < 20; ++i) write_text(path("a"), text);
  };
  std::thread other([&] { write(ones); });
  write(twos);
  other.join();
  const std::string left = read_text(path("a"));
  EXPECT_TRUE(left == ones || left == twos);
  EXPECT_THAT(names(), testing::ElementsAre("a"));
}

TEST_F(WriteText, NamesThePathIfItFails) {
  EXPECT_THAT(message_of<InputError>([&] { write_text(path("missing/a"), "text"); }),
              testing::HasSubstr("missing/a"));
}

}  // namespace
}  // namespace howmany
