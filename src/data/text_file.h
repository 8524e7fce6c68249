// Opens text for reading: gzip is decompressed, UTF-16 is converted to UTF-8, and a byte order mark is removed. A
// plain file stays mapped.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace lacuna {

struct TextFile {
  std::shared_ptr<const void> owner;
  std::string_view text;
};

// Exit::data for damaged gzip, and for text that would expand too far: memory is a bounded multiple of the file's
// size.
TextFile open_text(const std::string& path);

// The ending that tells the format, in lower case and without .gz: "DATA/Genes.CSV.gz" has ".csv".
std::string ending_of(const std::string& path);
// The file's name without that ending: "Genes".
std::string stem_of(const std::string& path);

}  // namespace lacuna
