// SPDX-License-Identifier: Apache-2.0
// Refuses a JSON document in which an object has a key twice, because readers disagree about which
// of the two counts. A SAX reader or a parser callback calls it. One document and one thread each.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

namespace howmany {

class UniqueKeys {
 public:
  // `source` is the name of the file in errors.
  explicit UniqueKeys(std::string source) : source_(std::move(source)) {}

  void start_object();
  void end_object();
  // Throws InputError with the file and the path of the key if the object has the key already.
  void key(const std::string& name);

 private:
  struct Object {
    std::unordered_set<std::string> keys;
    std::string last;
  };
  std::string source_;
  std::vector<Object> objects_;  // beyond depth_: kept, so that their memory is used again
  size_t depth_ = 0;
};

}  // namespace howmany
