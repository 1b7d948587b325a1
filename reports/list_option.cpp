#include "reports/list_option.h"

#include <algorithm>

namespace howmany {

std::vector<std::string> split_list(const std::string& option,
                                    const std::vector<std::string>& given) {
  std::vector<std::string> values;
  for (const std::string& text : given)
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      if (end == at) throw CLI::ValidationError(option, "a value of \"" + text + "\" is empty");
      values.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  return values;
}

}  // namespace howmany
