// The encoding of protocol buffers, for writing: https://protobuf.dev/programming-guides/encoding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lacuna {

// The bytes of one message, field after field.
class ProtoMessage {
 public:
  ProtoMessage& number(std::uint32_t field, std::uint64_t value);  // int32, int64, enum, bool
  ProtoMessage& real(std::uint32_t field, float value);
  ProtoMessage& text(std::uint32_t field, std::string_view value);  // string, bytes
  ProtoMessage& message(std::uint32_t field, const ProtoMessage& value) { return text(field, value.bytes()); }
  // The head of a field whose `length` bytes the caller writes elsewhere, right behind what is here.
  ProtoMessage& head(std::uint32_t field, std::uint64_t length);

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);
  std::string bytes_;
};

}  // namespace lacuna
