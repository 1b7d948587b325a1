// Options of a measurement that howmany hands on to the bench, to the report and to the job script
// as they are, by the names of their flags. A line in passed.cpp's list adds one. Values only.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace howmany::reports {

// Which of the devices have to be GPUs where a word is not the usual one. The first alone trains
// first, so no smaller part of the list lacks one.
enum class NeedsGpu { kNone, kFirst, kAll };

struct PassedOption {
  const char* name;    // of the flag, without its dashes
  const char* usual;   // the word that is the same as none
  const char* values;  // "f32,tf32,bf16"; empty: any word
  NeedsGpu needs_gpu;
  bool of_files;  // of what is trained on, which a preset has chosen
  const char* help;
};
std::span<const PassedOption> passed_options();

// Those that were given, in the words given; the usual word is none.
class Passed {
 public:
  const std::string& operator[](std::string_view name) const;  // empty: not given
  void set(std::string_view name, const std::string& word);
  const std::map<std::string, std::string>& given() const { return given_; }
  // Throws InputError for a word that is not known, the nearest suggested, not for all devices, or
  // about files where there are none.
  void check(const std::vector<std::string>& devices) const;

 private:
  std::map<std::string, std::string> given_;
};

}  // namespace howmany::reports
