// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/identical.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "core/base/text/files.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMaxProgramBytes = int64_t{1} << 30;

template <class T>
std::optional<T> struct_at(std::string_view bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view slice(std::string_view bytes, uint64_t at, uint64_t size) {
  if (at > bytes.size() || bytes.size() - at < size) return {};
  return bytes.substr(at, size);
}

using Section = std::tuple<uint64_t, uint64_t, uint64_t, std::string_view>;
using Sections = std::map<std::string, Section>;  // name -> address, flags, size, bytes

// Returns the loaded sections of a 64-bit ELF file, without the build id.
std::optional<Sections> loaded_sections(std::string_view bytes) {
  const auto header = struct_at<Elf64_Ehdr>(bytes, 0);
  const bool known = header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
                     header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_shnum > 0;
  if (!known) return std::nullopt;
  const auto section = [&](uint64_t i) {
    return struct_at<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr));
  };
  const auto names = section(header->e_shstrndx);
  if (!names) return std::nullopt;
  const std::string_view table = slice(bytes, names->sh_offset, names->sh_size);
  Sections loaded;
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto s = section(i);
    if (!s || s->sh_name >= table.size()) return std::nullopt;
    const std::string_view rest = table.substr(s->sh_name);
    const std::string name(rest.substr(0, rest.find('\0')));
    if ((s->sh_flags & SHF_ALLOC) == 0 || name == ".note.gnu.build-id") continue;
    const auto content =
        s->sh_type == SHT_NOBITS ? std::string_view() : slice(bytes, s->sh_offset, s->sh_size);
    loaded[name] = {s->sh_addr, s->sh_flags, s->sh_size, content};
  }
  return loaded;
}

// True if its dynamic strings contain $ORIGIN, so that libraries depend on its folder.
bool uses_origin(std::string_view bytes, const std::optional<Sections>& sections) {
  if (sections) {
    const auto strings = sections->find(".dynstr");
    bytes = strings == sections->end() ? std::string_view() : std::get<3>(strings->second);
  }
  return bytes.find("$ORIGIN") != std::string_view::npos;
}

std::optional<std::string> bytes_of(const std::string& path) {
  try {
    if (fs::is_regular_file(path)) return read_text(path, kMaxProgramBytes);
  } catch (const InputError&) {
  }
  return std::nullopt;
}

}  // namespace

bool same_program(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (fs::equivalent(a, b, ignored)) return true;
  const auto left = bytes_of(a), right = bytes_of(b);
  if (!left || !right) return false;
  const auto x = loaded_sections(*left), y = loaded_sections(*right);
  if (uses_origin(*left, x) || uses_origin(*right, y)) return false;
  return *left == *right || (x && y && !x->empty() && *x == *y);
}

bool same_command(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const std::string& x, const std::string& y) { return x == y || same_program(x, y); });
}

}  // namespace howmany::reports
