// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/program_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/process.h"

namespace howmany {
namespace {

size_t padded(size_t size) { return (size + 3) & ~size_t{3}; }

// Returns the build id from the linker's note: a hash of the executable's contents.
std::string build_id_in(const char* note, size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, note, sizeof head);
    const char* const id = note + sizeof head + padded(head.n_namesz);
    const size_t whole = sizeof head + padded(head.n_namesz) + padded(head.n_descsz);
    if (whole > size) return "";
    if (head.n_type == NT_GNU_BUILD_ID) {
      const auto* const bytes = reinterpret_cast<const unsigned char*>(id);
      const size_t count = std::min<size_t>(head.n_descsz, 8);
      return fmt::format("{:02x}", fmt::join(bytes, bytes + count, ""));
    }
    note += whole;
    size -= whole;
  }
  return "";
}

// Stops at the first object, which is the program.
int find_build_id(dl_phdr_info* object, size_t, void* found) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const auto* const notes = reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr);
    std::string id = build_id_in(notes, part.p_memsz);
    if (!id.empty()) *static_cast<std::string*>(found) = std::move(id);
  }
  return 1;
}

}  // namespace

std::string this_program() {
  std::string text = "unknown";
  dl_iterate_phdr(find_build_id, &text);
  const std::vector<std::string> arguments = arguments_of_this_process();
  for (size_t i = 1; i < arguments.size(); ++i)
    text += " " + arguments[i];  // argv[0] may differ between hosts
  return text;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string difference_of(const std::vector<std::string>& programs) {
  std::vector<size_t> others;
  for (size_t r = 1; r < programs.size(); ++r)
    if (programs[r] != programs[0]) others.push_back(r);
  if (others.empty()) return "";
  const auto parts = [](const std::string& program) {
    const size_t space = std::min(program.find(' '), program.size());
    return std::pair(program.substr(0, space), program.substr(space));
  };
  const auto [build, arguments] = parts(programs[0]);
  const auto [other_build, other_arguments] = parts(programs[others[0]]);
  const bool one = others.size() == 1;
  return fmt::format("rank{} {} of {} {} not what rank 0 is: {}", one ? "" : "s",
                     fmt::join(others, ", "), programs.size(), one ? "is" : "are",
                     build != other_build
                         ? fmt::format("build {} there, {} on rank 0", other_build, build)
                         : fmt::format("started with '{}' there, '{}' on rank 0",
                                       other_arguments.empty() ? "" : other_arguments.substr(1),
                                       arguments.empty() ? "" : arguments.substr(1)));
}

}  // namespace howmany
