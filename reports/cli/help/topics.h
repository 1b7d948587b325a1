// SPDX-License-Identifier: Apache-2.0
// The concepts behind the command, as text. `howmany help TOPIC` prints a topic, and each is a
// section of the man page. To add a topic, add an entry in topics.cpp.
#pragma once

#include <span>
#include <string>

namespace howmany::reports {

// The text consists of paragraphs and of lists with lines "  term   meaning". A line with more than
// two leading blanks continues the meaning above it. ASCII, at most 90 columns.
struct HelpTopic {
  const char* name;
  const char* section;  // of the man page
  const char* summary;
  const char* text;
};

std::span<const HelpTopic> help_topics();
// Returns nullptr if no topic has that name.
const HelpTopic* find_help_topic(const std::string& name);

}  // namespace howmany::reports
