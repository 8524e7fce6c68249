// What the child does with libhdf5: finds objects by path and sends their values.
#include <hdf5.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/hdf5.h"
#include "data/lzf.h"

namespace lacuna::hdf5 {
namespace {

constexpr std::uint64_t kSentBytes = std::uint64_t{4} << 20;  // bytes that are read and sent at once
constexpr std::uint64_t kTimes = 16;  // how often a file may be read over, through several links to one place
constexpr std::uint64_t kTexts = 1024;                    // texts that are read at once
constexpr std::uint64_t kSpare = std::uint64_t{1} << 20;  // a small promise is always believed

class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }  // NOLINT: libhdf5 takes it everywhere
  bool good() const { return id_ >= 0; }

 private:
  hid_t id_;
  Close close_;
};

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(Exit::data, format, std::forward<Args>(args)...);
}

// What libhdf5 says went wrong, as deep as it knows it.
std::string reason() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
        auto& found = *static_cast<std::string*>(out);
        if (found.empty() && error->desc != nullptr) found = error->desc;
        return 0;
      },
      &text);
  return text.empty() ? "the file may be damaged" : text;
}

// h5py stores what a chunk becomes, but too little where values are texts: the room grows to what LZF can
// make of that many bytes (264 of three).
std::size_t lzf_filter(unsigned flags, std::size_t count, const unsigned* settings, std::size_t bytes,
                       std::size_t* size, void** buffer) {
  if ((flags & H5Z_FLAG_REVERSE) == 0) return 0;
  const std::size_t most = 88 * bytes + 64;
  for (std::size_t room = count >= 3 && settings[2] != 0 ? settings[2] : bytes;; room *= 2) {
    room = std::min(room, most);
    auto* out = static_cast<std::byte*>(std::malloc(room));
    if (out == nullptr) return 0;
    const std::size_t made = lzf_decompress({static_cast<const std::byte*>(*buffer), bytes}, {out, room});
    if (made != 0) {
      std::free(*buffer);
      *buffer = out;
      *size = room;
      return made;
    }
    std::free(out);
    if (room == most) return 0;
  }
}

void prepare_library() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);  // a file cannot name code to be loaded
  static const H5Z_class2_t lzf = {H5Z_CLASS_T_VERS, kLzfFilter, 0, 1, "lzf", nullptr, nullptr, lzf_filter};
  H5Zregister(&lzf);
}

// How values of a type arrive in memory.
struct Memory {
  Element element = Element::f32;
  Handle type{H5I_INVALID_HID, H5Tclose};
  bool pointers = false;  // texts of any length: each value is a char*
  std::size_t size = 0;   // bytes of a value in memory
  H5T_str_t pad = H5T_STR_NULLTERM;
};

bool is_half(hid_t type) {
  std::size_t sign = 0, exponent = 0, exponent_size = 0, fraction = 0, fraction_size = 0;
  return H5Tget_size(type) == 2 &&
         H5Tget_fields(type, &sign, &exponent, &exponent_size, &fraction, &fraction_size) >= 0 &&
         sign == 15 && exponent == 10 && exponent_size == 5 && fraction == 0 && fraction_size == 10 &&
         H5Tget_ebias(type) == 15 && H5Tget_norm(type) == H5T_NORM_IMPLIED;
}

bool is_boolean(hid_t type) {  // as h5py writes them
  if (H5Tget_nmembers(type) != 2 || H5Tget_size(type) != 1) return false;
  for (unsigned k = 0; k < 2; ++k) {
    char* name = H5Tget_member_name(type, k);
    std::int8_t value = -1;
    const bool right = name != nullptr && H5Tget_member_value(type, k, &value) >= 0 &&
                       std::string_view(name) == (value == 0 ? "FALSE" : "TRUE") &&
                       (value == 0 || value == 1);
    H5free_memory(name);
    if (!right) return false;
  }
  return true;
}

Memory integers(std::size_t size, bool is_signed) {
  struct Known {
    std::size_t size;
    bool is_signed;
    Element element;
    hid_t type;
  };
  const Known known[] = {{1, true, Element::i8, H5T_STD_I8LE},   {1, false, Element::u8, H5T_STD_U8LE},
                         {2, true, Element::i16, H5T_STD_I16LE}, {2, false, Element::u16, H5T_STD_U16LE},
                         {4, true, Element::i32, H5T_STD_I32LE}, {4, false, Element::u32, H5T_STD_U32LE},
                         {8, true, Element::i64, H5T_STD_I64LE}, {8, false, Element::u64, H5T_STD_U64LE}};
  for (const auto& k : known)
    if (k.size == size && k.is_signed == is_signed)
      return {k.element, Handle(H5Tcopy(k.type), H5Tclose), false, size, H5T_STR_NULLTERM};
  refuse("contains integers of {} bytes", size);
}

Memory memory_for(hid_t type) {
  const std::size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return integers(size, H5Tget_sign(type) == H5T_SGN_2);
    case H5T_ENUM: {
      const Handle base(H5Tget_super(type), H5Tclose);
      Memory memory = integers(H5Tget_size(base), H5Tget_sign(base) == H5T_SGN_2);
      if (is_boolean(type)) memory.element = Element::boolean;
      if (size == 1) memory.type = Handle(H5Tcopy(type), H5Tclose);  // unchanged
      return memory;
    }
    case H5T_FLOAT: {
      if (is_half(type)) {
        Memory memory{Element::f16, Handle(H5Tcopy(type), H5Tclose), false, 2, H5T_STR_NULLTERM};
        H5Tset_order(memory.type, H5T_ORDER_LE);
        return memory;
      }
      if (size != 4 && size != 8) refuse("contains floating point numbers of {} bytes", size);
      return {size == 4 ? Element::f32 : Element::f64,
              Handle(H5Tcopy(size == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE), H5Tclose), false, size,
              H5T_STR_NULLTERM};
    }
    case H5T_STRING: {
      Memory memory{Element::text, Handle(H5Tcopy(type), H5Tclose), H5Tis_variable_str(type) > 0, size,
                    H5Tget_strpad(type)};
      if (memory.pointers) memory.size = sizeof(char*);
      return memory;
    }
    default:
      refuse("contains neither numbers nor strings");
  }
}

std::string padded_text(const char* from, std::size_t size, H5T_str_t pad) {
  std::string text(from, strnlen(from, size));
  if (pad == H5T_STR_SPACEPAD) text.resize(text.find_last_not_of(' ') + 1);
  return text;
}

// Files name the filters that their values went through. A pipeline that could grow beyond deflate's factor
// is refused.
void check_filters(hid_t creation) {
  int compressors = 0;
  for (int k = 0; k < H5Pget_nfilters(creation); ++k) {
    unsigned flags = 0, settings[8] = {}, config = 0;
    std::size_t count = std::size(settings);
    char name[64] = "";
    const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned>(k), &flags, &count, settings,
                                               sizeof name, name, &config);
    const bool compressor = filter == H5Z_FILTER_DEFLATE || filter == kLzfFilter;
    if (!compressor && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
      refuse(
          "is compressed by filter {}{}, which this program does not have; write the file with "
          "compression=\"gzip\" "
          "or none",
          filter,
          *name == '\0' ? "" : fmt::format(" ({})", padded_text(name, sizeof name, H5T_STR_NULLTERM)));
    compressors += compressor ? 1 : 0;
  }
  if (compressors > 1) refuse("is compressed {} times over", compressors);
}

class Server {
 public:
  Server(const std::string& path, std::uint64_t bytes, Channel& channel)
      : path_(path), bytes_(bytes), left_(kSpare + kTimes * bytes), channel_(channel) {}

  void run() {
    prepare_library();
    for (;;) {
      const std::uint64_t question = channel_.get_number();
      const std::string at = channel_.get_text(), name = channel_.get_text();
      try {
        if (!file_.good()) open();
        answer(question, at, name);
      } catch (const Error& error) {
        channel_.put_number(kBad);
        channel_.put_text(at.empty() ? error.what() : fmt::format("'{}' {}", at, error.what()));
      } catch (const std::bad_alloc&) {
        channel_.put_number(kBad);
        channel_.put_text(fmt::format("'{}' needs more memory than such a file should", at));
      }
      channel_.flush();
    }
  }

 private:
  void open() {
    file_ = Handle(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (!file_.good()) refuse("cannot be opened as an HDF5 file: {}; it may be cut off or damaged", reason());
  }

  void answer(std::uint64_t question, const std::string& at, const std::string& name) {
    Handle object = find(at);
    switch (question) {
      case kInfo:
        return send_info(object);
      case kChildren:
        return send_children(required(object));
      case kFields:
        return send_fields(required(object));
      case kRead:
        return send_dataset(required(object), name);
      case kAttribute:
        return send_attribute(required(object), name);
      default:
        refuse("question {}", question);
    }
  }

  static const Handle& required(const Handle& object) {
    if (!object.good()) refuse("is not there");
    return object;
  }

  // Walks down by hard links only, so that nothing outside the file, and nothing twice removed, is ever
  // opened.
  Handle find(const std::string& at) const {
    Handle object(H5Oopen(file_, "/", H5P_DEFAULT), H5Oclose);
    if (!object.good()) refuse("cannot be opened: {}", reason());
    if (at.empty()) return object;
    for (const auto part : split(at, '/')) {
      const std::string name(part);
      if (H5Iget_type(object) != H5I_GROUP || name.empty() || name == "." ||
          H5Lexists(object, name.c_str(), H5P_DEFAULT) <= 0)
        return {H5I_INVALID_HID, H5Oclose};
      H5L_info_t link{};
      if (H5Lget_info(object, name.c_str(), &link, H5P_DEFAULT) < 0) refuse("cannot be read: {}", reason());
      if (link.type != H5L_TYPE_HARD)
        refuse("is {} link; only values inside the file are read", link.type == H5L_TYPE_SOFT ? "a soft"
                                                                   : link.type == H5L_TYPE_EXTERNAL
                                                                       ? "an external"
                                                                       : "a user-defined");
      Handle next(H5Oopen(object, name.c_str(), H5P_DEFAULT), H5Oclose);
      if (!next.good()) refuse("cannot be opened: {}", reason());
      object = std::move(next);
    }
    return object;
  }

  void send_info(const Handle& object) {
    const H5I_type_t type = object.good() ? H5Iget_type(object) : H5I_BADID;
    std::vector<hsize_t> dims;
    if (type == H5I_DATASET) dims = dimensions(Handle(H5Dget_space(object), H5Sclose));
    channel_.put_number(kGood);
    channel_.put_number(static_cast<std::uint64_t>(type == H5I_GROUP     ? Hdf5File::Kind::group
                                                   : type == H5I_DATASET ? Hdf5File::Kind::dataset
                                                                         : Hdf5File::Kind::absent));
    channel_.put_number(dims.size());
    for (auto size : dims) channel_.put_number(size);
  }

  void send_children(const Handle& group) {
    if (H5Iget_type(group) != H5I_GROUP) refuse("is not a group");
    struct Found {
      std::vector<std::string> names;
      std::uint64_t left;
    } found{{}, bytes_ + kSpare};
    const auto add = [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
      auto& list = *static_cast<Found*>(to);
      const std::size_t size = std::strlen(name) + 1;
      if (size > list.left) return -1;
      list.left -= size;
      list.names.emplace_back(name);
      return 0;
    };
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &found) < 0)
      refuse("cannot be listed: {}", reason());
    send_names(found.names);
  }

  void send_names(const std::vector<std::string>& names) {
    channel_.put_number(kGood);
    channel_.put_number(names.size());
    for (const auto& name : names) channel_.put_text(name);
  }

  void send_fields(const Handle& dataset) {
    std::vector<std::string> names;
    if (H5Iget_type(dataset) == H5I_DATASET) {
      const Handle type(H5Dget_type(dataset), H5Tclose);
      if (H5Tget_class(type) == H5T_COMPOUND)
        for (int k = 0; k < H5Tget_nmembers(type); ++k) {
          char* name = H5Tget_member_name(type, static_cast<unsigned>(k));
          names.emplace_back(name == nullptr ? "" : name);
          H5free_memory(name);
        }
    }
    send_names(names);
  }

  static std::vector<hsize_t> dimensions(const Handle& space) {
    const int rank = H5Sget_simple_extent_ndims(space);
    if (rank < 0 || H5Sget_simple_extent_type(space) == H5S_NULL) refuse("has no values");
    std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
    if (rank > 0) H5Sget_simple_extent_dims(space, dims.data(), nullptr);
    return dims;
  }

  // The number of values, after checking that so many can be in `storage` bytes of the file.
  static std::uint64_t checked_count(const std::vector<hsize_t>& dims, std::uint64_t size,
                                     std::uint64_t storage) {
    std::uint64_t count = 1, total = 0;
    for (auto n : dims)
      if (__builtin_mul_overflow(count, n, &count)) count = UINT64_MAX;
    if (__builtin_mul_overflow(count, size, &total) || (total > kSpare && total / 1032 > storage))
      refuse("promises {} values of {} bytes, but has only {} bytes in the file",
             count == UINT64_MAX ? "2^64" : count_text(count), size, storage);
    return count;
  }

  void send_shape(Element element, const std::vector<hsize_t>& dims) {
    channel_.put_number(kGood);
    channel_.put_number(static_cast<std::uint64_t>(element));
    channel_.put_number(dims.size());
    for (auto size : dims) channel_.put_number(size);
  }

  void send_dataset(const Handle& dataset, const std::string& field) {
    if (H5Iget_type(dataset) != H5I_DATASET) refuse("is not a dataset");
    const Handle type(H5Dget_type(dataset), H5Tclose), space(H5Dget_space(dataset), H5Sclose),
        creation(H5Dget_create_plist(dataset), H5Pclose);
    if (!type.good() || !space.good() || !creation.good()) refuse("cannot be read: {}", reason());
    const H5D_layout_t layout = H5Pget_layout(creation);
    if (layout == H5D_VIRTUAL || H5Pget_external_count(creation) > 0)
      refuse("lies in other files; only values inside the file are read");
    check_filters(creation);
    const std::vector<hsize_t> dims = dimensions(space);
    if (dims.size() > 2) refuse("has {} dimensions, expected at most 2", dims.size());
    Memory memory = field_memory(type, field);
    const std::uint64_t storage = std::min<std::uint64_t>(H5Dget_storage_size(dataset), bytes_);
    if (storage > left_) refuse("and what was read before it are the same values many times over");
    left_ -= storage;
    const std::uint64_t in_file = H5Tget_size(type);
    const std::uint64_t count = checked_count(dims, std::max<std::uint64_t>(in_file, memory.size), storage);
    const std::uint64_t rows = dims.empty() ? 1 : dims[0], cols = dims.size() < 2 ? 1 : dims[1];
    Blocks blocks{1, std::max<std::uint64_t>(cols, 1)};
    if (layout == H5D_CHUNKED) {
      hsize_t chunk[32] = {1, 1};
      if (H5Pget_chunk(creation, 32, chunk) < 1) refuse("cannot be read: {}", reason());
      blocks = {
          std::clamp<std::uint64_t>(chunk[0], 1, std::max<std::uint64_t>(rows, 1)),
          dims.size() < 2 ? 1 : std::clamp<std::uint64_t>(chunk[1], 1, std::max<std::uint64_t>(cols, 1))};
      checked_count({chunk[0], dims.size() < 2 ? 1 : chunk[1]}, in_file, bytes_);
    }
    // Whole chunks, first side by side and then below each other.
    const std::uint64_t most = memory.pointers ? kTexts * sizeof(char*) : kSentBytes;
    const auto grow = [&](std::uint64_t& side, std::uint64_t limit) {
      const std::uint64_t fit = most / (blocks.rows * blocks.cols * memory.size);
      if (fit >= 2) side = std::min(limit, side * fit);
    };
    grow(blocks.cols, std::max<std::uint64_t>(cols, 1));
    grow(blocks.rows, std::max<std::uint64_t>(rows, 1));
    const auto read = [&](std::uint64_t i, std::uint64_t j, std::uint64_t height, std::uint64_t width,
                          void* to) {
      const hsize_t start[2] = {i, j}, extent[2] = {height, width}, all = height * width;
      const Handle flat(H5Screate_simple(1, &all, nullptr), H5Sclose);
      if (!dims.empty() && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, extent, nullptr) < 0)
        refuse("cannot be read: {}", reason());
      if (H5Dread(dataset, memory.type, flat, space, H5P_DEFAULT, to) < 0)
        refuse("cannot be read: {}", reason());
    };
    if (memory.element == Element::text) return send_texts(memory, dims, rows, cols, count, blocks, read);
    send_shape(memory.element, dims);
    channel_.put_number(blocks.rows);
    channel_.put_number(blocks.cols);
    std::vector<std::byte> buffer;
    for (std::uint64_t i = 0; i < rows && count > 0; i += blocks.rows)
      for (std::uint64_t j = 0; j < cols; j += blocks.cols) {
        const std::uint64_t height = std::min(blocks.rows, rows - i), width = std::min(blocks.cols, cols - j);
        buffer.resize(height * width * memory.size);
        read(i, j, height, width, buffer.data());
        channel_.put_number(kGood);
        channel_.put_bytes(buffer);
      }
  }

  // Texts are few and their sizes are not known before they are read: they are gathered, and sent when all
  // are there.
  template <class Read>
  void send_texts(const Memory& memory, const std::vector<hsize_t>& dims, std::uint64_t rows,
                  std::uint64_t cols, std::uint64_t count, Blocks blocks, const Read& read) {
    if (dims.size() == 2) {  // row by row: their order is that of the rows
      blocks.rows = 1;
      blocks.cols = std::min<std::uint64_t>(cols, kTexts);
    }
    std::vector<std::string> texts;
    std::uint64_t left = bytes_ + kSpare + (memory.pointers ? 0 : 1032 * bytes_);
    std::vector<std::byte> buffer;
    for (std::uint64_t i = 0; i < rows && count > 0; i += blocks.rows)
      for (std::uint64_t j = 0; j < cols; j += blocks.cols) {
        const std::uint64_t height = std::min(blocks.rows, rows - i), width = std::min(blocks.cols, cols - j);
        buffer.assign(height * width * memory.size, std::byte{0});
        read(i, j, height, width, buffer.data());
        take_texts(memory, height * width, buffer, left, texts);
      }
    send_shape(Element::text, dims);
    for (const auto& text : texts) channel_.put_text(text);
  }

  static void take_texts(const Memory& memory, std::uint64_t count, std::vector<std::byte>& buffer,
                         std::uint64_t& left, std::vector<std::string>& texts) {
    for (std::uint64_t k = 0; k < count; ++k) {
      if (memory.pointers) {
        char* text = nullptr;
        std::memcpy(&text, buffer.data() + k * sizeof text, sizeof text);
        texts.emplace_back(text == nullptr ? "" : text);
      } else {
        texts.push_back(padded_text(reinterpret_cast<const char*>(buffer.data() + k * memory.size),
                                    memory.size, memory.pad));
      }
      if (texts.back().size() > left) refuse("contains more text than the file has bytes");
      left -= texts.back().size();
    }
    if (!memory.pointers) return;
    const hsize_t all = count;
    const Handle flat(H5Screate_simple(1, &all, nullptr), H5Sclose);
    H5Dvlen_reclaim(memory.type, flat, H5P_DEFAULT, buffer.data());
  }

  static Memory field_memory(const Handle& type, const std::string& field) {
    if (field.empty()) return memory_for(type);
    const int index = H5Tget_class(type) == H5T_COMPOUND ? H5Tget_member_index(type, field.c_str()) : -1;
    if (index < 0) refuse("has no field '{}'", field);
    const Handle member(H5Tget_member_type(type, static_cast<unsigned>(index)), H5Tclose);
    Memory memory = memory_for(member);
    Handle compound(H5Tcreate(H5T_COMPOUND, memory.size), H5Tclose);
    if (H5Tinsert(compound, field.c_str(), 0, memory.type) < 0) refuse("cannot be read: {}", reason());
    memory.type = std::move(compound);
    return memory;
  }

  void send_attribute(const Handle& object, const std::string& name) {
    if (H5Aexists(object, name.c_str()) <= 0) {
      channel_.put_number(kGood);
      channel_.put_number(0);
      return;
    }
    const Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
    if (!attribute.good()) refuse("has an attribute '{}' that cannot be read: {}", name, reason());
    const Handle type(H5Aget_type(attribute), H5Tclose), space(H5Aget_space(attribute), H5Sclose);
    const Memory memory = memory_for(type);
    const std::vector<hsize_t> dims = dimensions(space);
    if (dims.size() > 2) refuse("has an attribute '{}' of {} dimensions", name, dims.size());
    const std::uint64_t count =
        checked_count(dims, std::max<std::uint64_t>(H5Tget_size(type), memory.size), bytes_);
    std::vector<std::byte> buffer(count * memory.size);
    if (count > 0 && H5Aread(attribute, memory.type, buffer.data()) < 0)
      refuse("has an attribute '{}' that cannot be read: {}", name, reason());
    std::vector<std::string> texts;
    std::uint64_t left = bytes_ + kSpare;
    if (memory.element == Element::text) take_texts(memory, count, buffer, left, texts);
    channel_.put_number(kGood);
    channel_.put_number(1);
    channel_.put_number(static_cast<std::uint64_t>(memory.element));
    channel_.put_number(dims.size());
    for (auto size : dims) channel_.put_number(size);
    if (memory.element == Element::text) {
      for (const auto& text : texts) channel_.put_text(text);
      return;
    }
    channel_.put_number(std::max<std::uint64_t>(dims.empty() ? 1 : dims[0], 1));
    channel_.put_number(std::max<std::uint64_t>(dims.size() < 2 ? 1 : dims[1], 1));
    if (count == 0) return;
    channel_.put_number(kGood);
    channel_.put_bytes(buffer);
  }

  const std::string path_;
  std::uint64_t bytes_, left_;  // of the file; that may still be read
  Channel& channel_;
  Handle file_{H5I_INVALID_HID, H5Fclose};
};

}  // namespace

void answer_questions(const std::string& path, std::uint64_t bytes, Channel& channel) {
  Server(path, bytes, channel).run();
}

}  // namespace lacuna::hdf5
