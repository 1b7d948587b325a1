// SPDX-License-Identifier: Apache-2.0
#include "benches/script/working_copy.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "core/base/error.h"

namespace howmany::benches {
namespace {

namespace fs = std::filesystem;

class CopyOfAFolder : public ::testing::Test {
 protected:
  void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string read(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  PrivateFolder from_, to_, other_;
  const fs::path from = from_.path(), to = to_.path(), other = other_.path();
};

TEST_F(CopyOfAFolder, HasFilesAndFoldersOfItsOwn) {
  write(from / "train.py", "train");
  write(from / "a/b/c.txt", "c");
  copy_folder(from, to);
  EXPECT_EQ(read(to / "train.py"), "train");
  write(to / "a/b/c.txt", "changed");
  EXPECT_EQ(read(from / "a/b/c.txt"), "c");
}

TEST_F(CopyOfAFolder, LeavesOutResultsAndHistory) {
  write(from / "howmany-out/x/summary.json", "{}");
  write(from / ".git/HEAD", "x");
  write(from / "a/.git/HEAD", "x");
  copy_folder(from, to);
  EXPECT_FALSE(fs::exists(to / "howmany-out"));
  EXPECT_FALSE(fs::exists(to / ".git"));
  EXPECT_TRUE(fs::exists(to / "a/.git/HEAD"));
}

TEST_F(CopyOfAFolder, LinksLeadToTheirPlacesAndThoseWithinToTheCopy) {
  write(other / "data.txt", "data");
  write(from / "a/file", "mine");
  fs::create_symlink(fs::path("..") / other.filename() / "data.txt", from / "outside");
  fs::create_directory_symlink("a", from / "inside");
  copy_folder(from, to);
  EXPECT_EQ(read(to / "outside"), "data");
  EXPECT_EQ(fs::canonical(to / "inside/file"), fs::canonical(to / "a/file"));
  fs::create_symlink(fs::canonical(from / "a/file"), from / "full");
  fs::remove_all(to);
  fs::create_directory(to);
  EXPECT_THROW(copy_folder(from, to), Error);
}

TEST_F(CopyOfAFolder, RefusesMoreThanTheLimit) {
  write(from / "large", std::string(1000, 'x'));
  EXPECT_NO_THROW(copy_folder(from, to, 1000));
  EXPECT_THROW(copy_folder(from, other, 999), Error);
}

}  // namespace
}  // namespace howmany::benches
