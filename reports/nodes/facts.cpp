// SPDX-License-Identifier: Apache-2.0
#include "reports/nodes/facts.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/fd.h"
#include "core/base/process.h"
#include "core/base/text/json.h"
#include "core/base/text/lines.h"
#include "core/base/text/table.h"
#include "reports/results/machine.h"

namespace howmany::reports {
namespace {

constexpr double kAnswerSeconds = 60;
constexpr const char* kGlooInterface = "GLOO_SOCKET_IFNAME";
// Names of the JSON.
constexpr const char *kNode = "node", *kMachine = "machine", *kInterface = "interface",
                     *kPython = "python", *kTorch = "torch";
constexpr const char* kVersions =
    "import sys, torch; print(sys.version.split()[0], torch.__version__)";

std::optional<in_addr> address_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  return reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr;
}

bool is_loopback(in_addr address) { return (ntohl(address.s_addr) >> 24) == 127; }

// The address of this host from which packets to `there` are sent. Sends none.
std::optional<in_addr> address_towards(in_addr there) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr = there;
  to.sin_port = htons(9);
  sockaddr_in from{};
  socklen_t size = sizeof from;
  if (!socket || ::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&from), &size) != 0)
    return {};
  return from.sin_addr;
}

// The first interface with an IPv4 address that fulfils the condition.
std::string interface_that(const std::function<bool(const ifaddrs&, in_addr)>& condition) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, &::freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET &&
        condition(*one, reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr))
      return one->ifa_name;
  return "";
}

std::string interface_with(in_addr address) {
  return interface_that([&](const ifaddrs&, in_addr own) { return own.s_addr == address.s_addr; });
}

std::string any_interface() {
  return interface_that([](const ifaddrs& one, in_addr) {
    return (one.ifa_flags & IFF_UP) != 0 && (one.ifa_flags & IFF_LOOPBACK) == 0;
  });
}

// Gloo listens on the address of the host's name.
std::string needed_interface(const std::string& head) {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  const auto own = address_of(name);
  if (own && !is_loopback(*own) && !interface_with(*own).empty()) return "";
  const auto there = address_of(head);
  const auto towards = there ? address_towards(*there) : std::nullopt;
  return towards && !is_loopback(*towards) ? interface_with(*towards) : any_interface();
}

struct Told {
  std::string node;
  nlohmann::json facts;
};

std::vector<Told> facts_in(const std::string& out) {
  std::vector<Told> all;
  for (const std::string_view line : lines_of(out)) {
    if (!line.starts_with("{")) continue;  // a banner of the site
    nlohmann::json facts = parse_json(std::string(line), "howmany node");
    const std::string node = JsonNode(facts, "howmany node").at(kNode).string();
    all.push_back({node, std::move(facts)});
  }
  return all;
}

void refuse_silent(const Nodes& nodes, int count, const std::vector<Told>& told,
                   const ProcessResult& ended) {
  if (told.size() == static_cast<size_t>(count)) return;
  std::vector<std::string> silent;
  for (int i = 0; i < count; ++i) {
    const std::string& name = nodes.names[static_cast<size_t>(i)];
    const bool spoke = std::ranges::any_of(told, [&](const Told& one) { return one.node == name; });
    if (!spoke) silent.push_back(name);
  }
  const bool late = ended.how == ProcessResult::How::kTimedOut;
  throw InputError(
      fmt::format("{} did not answer{}: {}", fmt::join(silent, ", "),
                  late ? fmt::format(" within {:.0f} s", kAnswerSeconds) : "",
                  late ? "leave it out of the allocation (--exclude of Slurm), or give --nodes 1"
                       : ended.describe()));
}

// "torch: 2.13.0 on node1, 2.8.0 on node3"; empty if they are alike.
std::string unlike(const Told& first, const Told& other) {
  for (const char* const key : {kPython, kTorch}) {
    const auto here = first.facts.value(key, ""), there = other.facts.value(key, "");
    if (here != there)
      return fmt::format("{}: {} on {}, {} on {}", key, here, first.node, there, other.node);
  }
  const std::string machine = difference(other.facts[kMachine], first.facts[kMachine]);
  return machine.empty() ? ""
                         : fmt::format("{} is here, {} there: {}", first.node, other.node, machine);
}

void refuse_unlike(const std::vector<Told>& told) {
  std::vector<std::string> differences;
  for (const Told& one : told)
    if (const std::string text = unlike(told.front(), one); !text.empty())
      differences.push_back(text);
  if (!differences.empty())
    throw InputError(fmt::format(
        "the nodes are not alike ({}): choose like ones, such as by --constraint of Slurm, or "
        "measure one with --nodes 1",
        fmt::join(differences, "; ")));
}

}  // namespace

std::string facts_of_this_node(const std::string& head, const std::string& python) {
  nlohmann::json facts = {{kNode, name_of_this_node()},
                          {kMachine, machine_fingerprint()},
                          {kInterface, needed_interface(head)}};
  if (!python.empty()) {
    const ProcessResult told =
        run_command({.argv = {python, "-c", kVersions}, .timeout_seconds = kAnswerSeconds});
    const size_t blank = told.out.find(' ');
    facts[kPython] = told.ok() ? told.out.substr(0, blank) : told.describe();
    if (told.ok()) facts[kTorch] = trimmed(told.out.substr(blank + 1));
  }
  return facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> check_nodes(const Nodes& nodes, int count, const std::string& python) {
  Command command{.argv = start_on(nodes, count, 1), .timeout_seconds = kAnswerSeconds};
  command.argv[0] = find_in_path(command.argv[0]);
  command.argv.insert(command.argv.end(), {program_folder() + "/howmany", "node", nodes.names[0]});
  if (!python.empty()) command.argv.push_back(python);
  const ProcessResult ended = run_command(command);
  if (ended.how == ProcessResult::How::kInterrupted) throw InputError("interrupted");
  std::vector<Told> told = facts_in(ended.out);
  refuse_silent(nodes, count, told, ended);
  std::ranges::sort(told, {}, [&](const Told& one) {
    return std::ranges::find(nodes.names, one.node) - nodes.names.begin();
  });
  refuse_unlike(told);
  std::set<std::string> interfaces;
  for (const Told& one : told) interfaces.insert(one.facts.value(kInterface, ""));
  interfaces.erase("");
  if (interfaces.empty() || std::getenv(kGlooInterface) != nullptr) return {};
  if (interfaces.size() > 1)
    throw InputError(
        fmt::format("the nodes reach each other by {}, and Gloo needs one name: set {}",
                    fmt::join(interfaces, " and "), kGlooInterface));
  return {fmt::format("{}={}", kGlooInterface, *interfaces.begin())};
}

}  // namespace howmany::reports
