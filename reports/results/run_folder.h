// SPDX-License-Identifier: Apache-2.0
// The folder into which one run writes its results. Only one process at a time holds it.
//
//   const RunFolder folder = RunFolder::create(arguments.out);
//   write_text(folder.path() + "/summary.json", text);
#pragma once

#include <string>

namespace howmany::reports {

class RunFolder {
 public:
  // Calls catch_interrupts(). Makes and locks the folder `out`, which only this user can write to.
  // If `out` is empty, makes howmany-out/<UTC time><label>, with -2, -3, ... appended if that
  // exists. Throws InputError if:
  // * `out` holds anything, such as an earlier run,
  // * another process holds it (the message names the process),
  // * it cannot be written to, or the disk is nearly full.
  static RunFolder create(const std::string& out, const std::string& label = "");
  // Calls catch_interrupts(). Locks the folder of an earlier run, to continue that. Throws
  // InputError if another user owns its plan, or can write to it.
  static RunFolder reopen(const std::string& path);
  // Throws as create() does if `out` holds anything. Makes nothing.
  static void check(const std::string& out);
  // Takes the permission to write from other users.
  static void keep_others_out(const std::string& path);

  ~RunFolder();  // removes the folder if create() made it and it is empty
  RunFolder(RunFolder&& other) noexcept;
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit RunFolder(std::string path);

  std::string path_;
  int lock_;  // file descriptor; -1 after a move
  bool is_new_ = false;
};

// Returns the path of summary.json in the folder of a run, or `path` if that is no folder. Throws
// InputError if the folder is one of `howmany gate`, or holds no result yet.
std::string summary_path(const std::string& path);

}  // namespace howmany::reports
