#include "data/hdf5.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace lacuna {
namespace {

constexpr std::uint64_t kExpansion = 1032;  // of deflate, at most

std::uint64_t size_of(const std::string& path) {
  const auto file = MappedFile::open(path);
  constexpr std::string_view kMagic = "\x89HDF\r\n\x1a\n";
  for (std::size_t at = 0; at < file->size();
       at = at == 0 ? 512 : 2 * at)  // others may put something in front
    if (file->text().substr(at).starts_with(kMagic)) return file->size();
  fail(Exit::data, "{}: is not an HDF5 file, which .h5ad and .h5mu files are; it may be cut off or damaged",
       path);
}

std::vector<std::string> get_names(Channel& channel) {
  std::vector<std::string> names;
  for (std::uint64_t n = channel.get_count(); n > 0; --n) names.push_back(channel.get_text());
  return names;
}

}  // namespace

template <class F>
auto Hdf5File::ask(std::uint64_t question, const std::string& at, const std::string& name, F&& answer) {
  try {
    Channel& channel = child_->channel();
    channel.put_number(question);
    channel.put_text(at);
    channel.put_text(name);
    channel.flush();
    if (channel.get_number() != hdf5::kGood) throw Error(Exit::data, path_ + ": " + channel.get_text());
    return answer(channel);
  } catch (const Broken&) {
    child_->fail_broken("libhdf5");
  }
}

Hdf5File::Hdf5File(const std::string& path)
    : path_(path),
      bytes_(size_of(path)),
      left_(kExpansion * (bytes_ + 4096)),
      texts_left_((std::uint64_t{64} << 20) + 16 * bytes_) {
  // One chunk of values is in the child at a time, as stored in the file and after conversion.
  const std::uint64_t chunk = std::min<std::uint64_t>(std::uint64_t{4} << 30, kExpansion * bytes_);
  // Damage can send libhdf5 round in circles; a sound file needs a fraction of this.
  const Child::Limits limits{
      .seconds = static_cast<unsigned>(3 + 5 * std::min<std::uint64_t>(bytes_ >> 20, 36000)),
      .memory = (std::uint64_t{256} << 20) + 4 * chunk};
  child_ = std::make_unique<Child>(path, kExpansion * (bytes_ + 4096), limits, [&](Channel& channel) {
    hdf5::answer_questions(path, size_of(path), channel);
  });
  ask(hdf5::kInfo, "", "", [](Channel& channel) {  // it answers only if it could open the file
    channel.get_number();
    for (auto n = channel.get_count(); n > 0; --n) channel.get_number();
    return 0;
  });
}

Hdf5File::Info Hdf5File::info(const std::string& at) {
  return ask(hdf5::kInfo, at, "", [](Channel& channel) {
    Info info{static_cast<Kind>(channel.get_number())};
    info.shape.resize(std::min<std::uint64_t>(channel.get_count(), 32));
    for (auto& size : info.shape) size = channel.get_number();
    return info;
  });
}

std::vector<std::string> Hdf5File::children(const std::string& group) {
  return ask(hdf5::kChildren, group, "", [](Channel& channel) { return get_names(channel); });
}

std::vector<std::string> Hdf5File::fields(const std::string& dataset) {
  return ask(hdf5::kFields, dataset, "", [](Channel& channel) { return get_names(channel); });
}

Array Hdf5File::read(const std::string& dataset, const std::string& field) {
  return ask(hdf5::kRead, dataset, field,
             [&](Channel&) { return get_array(field.empty() ? dataset : field); });
}

std::optional<Array> Hdf5File::attribute(const std::string& at, const std::string& name) {
  return ask(hdf5::kAttribute, at, name, [&](Channel& channel) -> std::optional<Array> {
    if (channel.get_number() == 0) return std::nullopt;
    return get_array(name);
  });
}

std::string Hdf5File::text_attribute(const std::string& at, const std::string& name) {
  const auto array = attribute(at, name);
  return array && array->text.size() == 1 ? array->text[0] : "";
}

Array Hdf5File::get_array(const std::string& name) {
  Channel& channel = child_->channel();
  Array array;
  array.name = name;
  const std::uint64_t type = channel.get_number();
  if (type > static_cast<std::uint64_t>(Element::text)) throw Broken();
  array.type = static_cast<Element>(type);
  const std::uint64_t rank = channel.get_number();
  if (rank > 2) throw Broken();
  array.shape.resize(rank);
  for (auto& size : array.shape) size = channel.get_count();
  const std::uint64_t rows = array.rows(), cols = array.cols();
  // All that is ever read of a file stays within what its bytes can become, however often links name the same.
  // Texts of any length lie in the file as they are.
  const bool text = array.type == Element::text;
  std::uint64_t& left = text ? texts_left_ : left_;
  const std::size_t width = text ? sizeof(std::string) : element_size(array.type);
  if (rows != 0 && (cols > left / rows || rows * cols > left / width))
    fail(Exit::data, "{}: '{}' is {}, more than {} bytes can hold", path_, name, shape_text(array.shape),
         bytes_);
  left -= rows * cols * width;
  if (text) {
    for (std::uint64_t i = rows * cols; i > 0; --i) {
      array.text.push_back(channel.get_text());
      if (array.text.back().size() > left)
        fail(Exit::data, "{}: '{}' contains more text than {} bytes can", path_, name, bytes_);
      left -= array.text.back().size();
    }
    return array;
  }
  const hdf5::Blocks blocks{channel.get_number(), channel.get_number()};
  auto memory = std::make_shared<Matrix<std::byte>>(rows, cols * width);
  if (!memory->empty() && (blocks.rows == 0 || blocks.cols == 0)) throw Broken();
  for (std::uint64_t i = 0; i < memory->rows(); i += std::min(blocks.rows, rows - i))
    for (std::uint64_t j = 0; j < cols; j += std::min(blocks.cols, cols - j)) {
      const std::uint64_t height = std::min(blocks.rows, rows - i), wide = std::min(blocks.cols, cols - j);
      if (channel.get_number() != hdf5::kGood) throw Error(Exit::data, path_ + ": " + channel.get_text());
      if (wide == cols) {
        channel.get_bytes(memory->values().subspan(i * cols * width, height * wide * width));
        continue;
      }
      for (std::uint64_t r = 0; r < height; ++r)
        channel.get_bytes(memory->row(i + r).subspan(j * width, wide * width));
    }
  array.bytes = memory->values();
  array.owner = std::move(memory);
  return array;
}

}  // namespace lacuna
