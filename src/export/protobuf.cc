#include "export/protobuf.h"

#include <cstring>

namespace lacuna {
namespace {

enum Wire : std::uint32_t { kVarint = 0, kLength = 2, kFixed32 = 5 };

}  // namespace

void ProtoMessage::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>((value & 0x7f) | 0x80));
  bytes_.push_back(static_cast<char>(value));
}

ProtoMessage& ProtoMessage::number(std::uint32_t field, std::uint64_t value) {
  varint(field << 3 | kVarint);
  varint(value);
  return *this;
}

ProtoMessage& ProtoMessage::real(std::uint32_t field, float value) {
  varint(field << 3 | kFixed32);
  char raw[sizeof(value)];
  std::memcpy(raw, &value, sizeof(value));
  bytes_.append(raw, sizeof(raw));
  return *this;
}

ProtoMessage& ProtoMessage::head(std::uint32_t field, std::uint64_t length) {
  varint(field << 3 | kLength);
  varint(length);
  return *this;
}

ProtoMessage& ProtoMessage::text(std::uint32_t field, std::string_view value) {
  head(field, value.size());
  bytes_.append(value);
  return *this;
}

}  // namespace lacuna
