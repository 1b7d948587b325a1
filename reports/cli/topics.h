// SPDX-License-Identifier: Apache-2.0
// The concepts behind the command, as text that `howmany help TOPIC` prints. To add a topic, add an
// entry in topics.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace howmany::reports {

// The text consists of paragraphs and of lists with lines "  term   meaning". A line with more than
// two leading blanks continues the meaning above it. ASCII, at most 90 columns.
struct HelpTopic {
  const char* name;
  const char* summary;
  const char* text;
};

std::span<const HelpTopic> help_topics();
// Returns nullptr if no topic has that name.
const HelpTopic* find_help_topic(const std::string& name);
// Returns the names of all topics and commands.
std::vector<std::string> help_subjects();

}  // namespace howmany::reports
