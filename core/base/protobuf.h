// SPDX-License-Identifier: Apache-2.0
// An encoded protobuf message, for formats that need a dozen fields of a few messages. That does
// not justify a dependency on a protobuf compiler. Values only; not tied to any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace howmany {

class ProtobufMessage {
 public:
  ProtobufMessage& number(uint32_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  ProtobufMessage& text(uint32_t field, std::string_view bytes) {
    varint(field << 3 | 2);
    varint(bytes.size());
    bytes_ += bytes;
    return *this;
  }
  ProtobufMessage& message(uint32_t field, const ProtobufMessage& inner) {
    return text(field, inner.bytes_);
  }
  const std::string& bytes() const { return bytes_; }
  // The length and the message, as in files of several messages.
  std::string with_length() const {
    ProtobufMessage length;
    length.varint(bytes_.size());
    return length.bytes_ + bytes_;
  }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace howmany
