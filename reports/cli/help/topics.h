// The concepts behind the command, as text: `howmany help TOPIC` prints it, the man page has it as
// sections. To add a topic, add an entry in topics.cpp.
#pragma once

#include <span>
#include <string>

namespace howmany::reports {

// The text has paragraphs, and lists of lines "  term   meaning"; a line indented by more than two
// blanks continues the meaning above it. At most 90 columns, ASCII.
struct HelpTopic {
  const char* name;
  const char* section;  // of the man page
  const char* summary;
  const char* text;
};

std::span<const HelpTopic> help_topics();
// Returns nullptr if there is none of that name.
const HelpTopic* find_help_topic(const std::string& name);

}  // namespace howmany::reports
