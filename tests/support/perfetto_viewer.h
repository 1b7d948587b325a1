// SPDX-License-Identifier: Apache-2.0
// Reads a trace in Perfetto's format back, as a viewer does. Checks that every slice that ends has
// begun, and that a name is defined once and before its use.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace howmany::testing_support {

// A decoded protobuf message: field number to values, which are numbers or bytes.
struct Fields {
  std::multimap<uint64_t, uint64_t> numbers;
  std::multimap<uint64_t, std::string_view> texts;

  explicit Fields(std::string_view bytes) {
    while (!bytes.empty()) {
      const uint64_t key = varint(bytes), value = varint(bytes);
      if (key % 8 == 0) {
        numbers.emplace(key / 8, value);
      } else {
        EXPECT_EQ(key % 8, 2u);
        EXPECT_LE(value, bytes.size());
        texts.emplace(key / 8, bytes.substr(0, value));
        bytes.remove_prefix(std::min<size_t>(value, bytes.size()));
      }
    }
  }
  static uint64_t varint(std::string_view& bytes) {
    uint64_t value = 0;
    for (int shift = 0; !bytes.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes.front());
      bytes.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  uint64_t number(uint64_t field) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? 0 : found->second;
  }
  std::string text(uint64_t field) const {
    const auto found = texts.find(field);
    return found == texts.end() ? "" : std::string(found->second);
  }
};

// A trace as a viewer shows it.
struct Slice {
  std::string track, category, name;
  int64_t start = 0, end = -1;
  uint64_t payload = 0;
  size_t depth = 0;
};

struct Viewer {
  struct Sequence {
    std::map<uint64_t, std::string> categories, names, units;
    uint64_t track = 0;
    int64_t time = 0;
    bool clear = false;
    std::vector<size_t> open;
  };
  std::map<uint64_t, std::pair<std::string, uint64_t>> tracks;  // uuid -> name and parent
  std::map<uint64_t, Sequence> sequences;
  std::vector<Slice> slices;

  explicit Viewer(std::string_view trace) {
    const Fields all(trace);
    for (const auto& [field, bytes] : all.texts) {
      EXPECT_EQ(field, 1u);
      add(Fields(bytes));
    }
  }

  static void learn(const Fields& told, uint64_t field, std::map<uint64_t, std::string>& names) {
    const auto [first, last] = told.texts.equal_range(field);
    for (auto it = first; it != last; ++it) {
      const Fields one(it->second);
      EXPECT_FALSE(names.contains(one.number(1))) << "sent twice";
      names[one.number(1)] = one.text(2);
    }
  }

  void add(const Fields& packet) {
    Sequence& sequence = sequences[packet.number(10)];
    if (packet.number(13) == 1) {
      sequence = {};
      sequence.clear = true;
      sequence.track = Fields(Fields(packet.text(59)).text(11)).number(11);
    }
    if (const std::string d = packet.text(60); !d.empty()) {
      const Fields described(d);
      tracks[described.number(1)] = {described.text(2), described.number(5)};
    }
    const std::string told = packet.text(12);
    learn(Fields(told), 1, sequence.categories);
    learn(Fields(told), 2, sequence.names);
    learn(Fields(told), 3, sequence.units);
    if (const std::string event = packet.text(11); !event.empty()) {
      EXPECT_TRUE(sequence.clear);
      EXPECT_EQ(packet.number(13), 2u);
      sequence.time += static_cast<int64_t>(packet.number(8));
      add_event(Fields(event), sequence);
    }
  }

  void add_event(const Fields& event, Sequence& sequence) {
    if (event.number(9) == 2) {
      ASSERT_FALSE(sequence.open.empty()) << "ends what never began";
      slices[sequence.open.back()].end = sequence.time;
      sequence.open.pop_back();
      return;
    }
    const std::string annotation = event.text(4);
    slices.push_back({.track = tracks.at(sequence.track).first,
                      .category = sequence.categories.at(event.number(3)),
                      .name = sequence.names.at(event.number(10)),
                      .start = sequence.time,
                      .payload = Fields(annotation).number(3),
                      .depth = sequence.open.size()});
    sequence.open.push_back(slices.size() - 1);
  }
};

}  // namespace howmany::testing_support
