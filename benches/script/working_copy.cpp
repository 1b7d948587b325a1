// SPDX-License-Identifier: Apache-2.0
#include "benches/script/working_copy.h"

#include <algorithm>
#include <system_error>

#include "core/base/error.h"
#include "core/base/text/bytes.h"

namespace howmany::benches {
namespace {

namespace fs = std::filesystem;

bool is_within(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

void copy_link(const fs::path& link, const fs::path& from, const fs::path& to) {
  const fs::path target = fs::read_symlink(link);
  const fs::path leads_to = fs::weakly_canonical(link.parent_path() / target);
  if (!is_within(leads_to, from))
    fs::create_symlink(leads_to, to);
  else if (target.is_relative())
    fs::create_symlink(target, to);
  else
    throw Error(fmt::format("[script] --in-copy: the link {} names this folder by its full path",
                            link.filename().string()));
}

}  // namespace

void copy_folder(const fs::path& folder, const fs::path& to, uintmax_t most_bytes) {
  const fs::path from = fs::canonical(folder);
  uintmax_t bytes = 0;
  try {
    for (auto at = fs::recursive_directory_iterator(from); at != fs::end(at); ++at) {
      const fs::path name = at->path().filename(), copy = to / at->path().lexically_relative(from);
      if (at.depth() == 0 && (name == "howmany-out" || name == ".git")) {
        at.disable_recursion_pending();
      } else if (at->is_symlink()) {
        copy_link(at->path(), from, copy);
      } else if (at->is_directory()) {
        fs::create_directory(copy);
      } else if (at->is_regular_file()) {
        bytes += at->file_size();
        HM_ENSURE(bytes <= most_bytes,
                  "[script] --in-copy: the folder holds more than {}; start the command in a "
                  "smaller one, with links to its data",
                  format_bytes(static_cast<double>(most_bytes)));
        fs::copy_file(at->path(), copy);
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(fmt::format("[script] --in-copy: {}", error.code().message()));
  }
}

WorkingCopy::WorkingCopy(bool wanted) {
  if (!wanted) return;
  folder_ = std::make_unique<GuardedFolder>();
  copy_folder(fs::current_path(), folder_->path());
}

}  // namespace howmany::benches
