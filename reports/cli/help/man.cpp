// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/help/man.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "reports/cli/help/topics.h"

namespace howmany::reports {
namespace {

// Escapes text so that roff prints it literally: no requests, ASCII quotes and minus signs.
std::string roff(const std::string& text) {
  std::string escaped = text.starts_with('.') ? "\\&" : "";
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else if (c == '\'')
      escaped += "\\(aq";
    else if (c == '`')
      escaped += "\\(ga";
    else if (c == '^')
      escaped += "\\(ha";
    else if (c == '~')
      escaped += "\\(ti";
    else
      escaped += c;
  }
  return escaped;
}

std::vector<std::string> roff_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Formats "  term   meaning" as a tagged paragraph.
std::string roff_item(const std::string& line) {
  const size_t gap = line.find("  ", 2), meaning = line.find_first_not_of(' ', gap);
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(line.substr(2, gap - 2)),
                     meaning == std::string::npos ? "\\&" : roff(line.substr(meaning)));
}

std::string roff_text(const std::string& text) {
  std::string page;
  bool ended = false;
  for (const std::string& line : roff_lines(text)) {
    const size_t indent = line.find_first_not_of(' ');
    const bool blank = indent == std::string::npos;
    if (!blank && ended && indent == 0) page += ".PP\n";
    if (!blank) page += indent == 2 ? roff_item(line) : roff(line.substr(indent)) + "\n";
    ended = blank;
  }
  return page;
}

std::string roff_option(const OptionSpec& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back("\\fB" + roff(name) + "\\fR");
  std::string tag = fmt::format("{}", fmt::join(names, ", "));
  if (!option.type.empty()) tag += (tag.empty() ? "\\fI" : " \\fI") + roff(option.type) + "\\fR";
  return fmt::format(".TP\n{}\n{}\n", tag, option.help.empty() ? "\\&" : roff(option.help));
}

std::string roff_footer(const std::string& footer) {
  if (footer.empty()) return "";
  std::string text = ".PP\n.nf\n";
  for (const std::string& line : roff_lines(footer))
    text += line.empty() ? "\n" : roff(line) + "\n";
  return text + ".fi\n";
}

std::string roff_command(const CommandSpec& command) {
  std::string text = fmt::format(".SS howmany {}\n{}\n", command.name, roff(command.help));
  for (const OptionSpec& option : command.options)
    if (option.names != std::vector<std::string>{"--help", "-h"}) text += roff_option(option);
  return text + roff_footer(command.footer);
}

}  // namespace

std::string man_page(const CommandSpec& root, const std::string& date) {
  std::string page = fmt::format(
      ".TH HOWMANY 1 \"{}\" \"howmany {}\" \"User Commands\"\n"
      ".SH NAME\nhowmany \\- measure how many GPUs, loader workers and which backend to use\n"
      ".SH SYNOPSIS\n\\fBhowmany\\fR [\\fICOMMAND\\fR] [\\fIOPTION\\fR]...\n"
      ".SH DESCRIPTION\n{}\nWithout a command, \\fBhowmany\\fR runs \\fBrun\\fR.\n"
      "Every command has \\fB\\-\\-help\\fR.\n",
      date, HM_VERSION, roff(root.help));
  page += roff_footer(root.footer) + ".SH COMMANDS\n";
  for (const CommandSpec& command : root.commands) page += roff_command(command);
  for (const HelpTopic& topic : help_topics())
    page += fmt::format(".SH {}\n{}", topic.section, roff_text(topic.text));
  return page;
}

}  // namespace howmany::reports
