// SPDX-License-Identifier: Apache-2.0
#include "core/data/formats/tar_index.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include "core/base/error.h"
#include "core/base/fd.h"

namespace howmany {
namespace {

constexpr int64_t kBlock = 512;
constexpr size_t kReadAhead = 64 << 10;  // bytes; headers are far apart

class Archive {
 public:
  explicit Archive(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    HM_ENSURE(fd_, "{}", std::strerror(errno));
    look();
    open();
  }

  // Adds the next member if it is a regular file, or counts a link. Returns false at the end.
  bool next(TarIndex& index) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(archive_.get(), &entry);
    if (status == ARCHIVE_EOF) {
      check_end();
      return false;
    }
    HM_ENSURE(status >= ARCHIVE_WARN, "{}", reason());
    const char* const name = archive_entry_pathname(entry);
    HM_ENSURE(name != nullptr, "a member without a name");
    check_name(name);
    TarMember member{name, archive_filter_bytes(archive_.get(), -1), archive_entry_size(entry)};
    HM_ENSURE(member.size >= 0 && member.size <= size_ - member.offset,
              "truncated, {} has {} bytes and {} are there: pack or download it again", name,
              member.size, std::max<int64_t>(0, size_ - member.offset));
    end_ = std::max(end_, member.offset + (member.size + kBlock - 1) / kBlock * kBlock);
    const auto type = archive_entry_filetype(entry);
    if (type == AE_IFLNK || archive_entry_hardlink(entry) != nullptr)
      ++index.links;
    else if (type == AE_IFREG && archive_entry_sparse_count(entry) == 0)
      index.members.push_back(std::move(member));
    return true;
  }

 private:
  void look() {
    struct stat status {};
    HM_ENSURE(::fstat(fd_.get(), &status) == 0, "{}", std::strerror(errno));
    HM_ENSURE(S_ISREG(status.st_mode), "not a regular file");
    size_ = status.st_size;
    HM_ENSURE(size_ > 0, "empty file");
    std::array<unsigned char, 4> start{};
    const ssize_t n = ::pread(fd_.get(), start.data(), start.size(), 0);
    const std::string_view magic(reinterpret_cast<const char*>(start.data()),
                                 static_cast<size_t>(std::max<ssize_t>(n, 0)));
    for (const std::string_view known : {"\x1f\x8b", "BZh",
                                         "\xfd"
                                         "7zX",
                                         "\x28\xb5\x2f\xfd"})
      HM_ENSURE(!magic.starts_with(known),
                "compressed: samples are read by their offset, so decompress it");
  }

  void open() {
    archive_.reset(archive_read_new());
    HM_ENSURE(archive_ != nullptr, "out of memory");
    archive_read_support_format_tar(archive_.get());
    HM_ENSURE(archive_read_open_fd(archive_.get(), fd_.get(), kReadAhead) == ARCHIVE_OK, "{}",
              reason());
  }

  std::string reason() const {
    const char* const text = archive_error_string(archive_.get());
    return text != nullptr ? text : "not a tar archive";
  }

  static void check_name(const std::string& name) {
    const std::filesystem::path path(name);
    const bool out = path.is_absolute() || std::ranges::find(path, "..") != path.end();
    HM_ENSURE(!out, "the name {} leads out of the archive", name);
  }

  // An archive ends with blocks of zeros. They are missing if it was cut between two members.
  void check_end() const {
    std::array<char, kBlock> block;
    const ssize_t n = ::pread(fd_.get(), block.data(), block.size(), end_);
    HM_ENSURE(n == kBlock && std::ranges::count(block, '\0') == kBlock,
              "truncated, its end mark is missing: pack or download it again");
  }

  struct Free {
    void operator()(archive* a) const { archive_read_free(a); }
  };

  const Fd fd_;
  int64_t size_ = 0, end_ = 0;
  std::unique_ptr<archive, Free> archive_;
};

}  // namespace

TarIndex index_tar(const std::string& path) {
  Archive archive(path);
  TarIndex index;
  while (archive.next(index)) {
  }
  return index;
}

}  // namespace howmany
