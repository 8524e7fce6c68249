#include "data/hdf5_write.h"

#include <hdf5.h>

#include "base/error.h"

namespace lacuna {
namespace {

hid_t type_of(Element element) {  // a copy that the caller closes
  switch (element) {
    case Element::boolean: {
      const hid_t type = H5Tenum_create(H5T_STD_I8LE);
      const std::int8_t no = 0, yes = 1;
      H5Tenum_insert(type, "FALSE", &no);
      H5Tenum_insert(type, "TRUE", &yes);
      return type;
    }
    case Element::i8:
      return H5Tcopy(H5T_STD_I8LE);
    case Element::u8:
      return H5Tcopy(H5T_STD_U8LE);
    case Element::i32:
      return H5Tcopy(H5T_STD_I32LE);
    case Element::u32:
      return H5Tcopy(H5T_STD_U32LE);
    case Element::i64:
      return H5Tcopy(H5T_STD_I64LE);
    case Element::u64:
      return H5Tcopy(H5T_STD_U64LE);
    case Element::f32:
      return H5Tcopy(H5T_IEEE_F32LE);
    case Element::f64:
      return H5Tcopy(H5T_IEEE_F64LE);
    case Element::text: {
      const hid_t type = H5Tcopy(H5T_C_S1);
      H5Tset_size(type, H5T_VARIABLE);
      H5Tset_cset(type, H5T_CSET_UTF8);
      return type;
    }
    case Element::i16:
    case Element::u16:
    case Element::f16:
      break;
  }
  return H5I_INVALID_HID;
}

hid_t space_of(const Array& values) {
  if (values.shape.empty()) return H5Screate(H5S_SCALAR);
  const std::vector<hsize_t> dims(values.shape.begin(), values.shape.end());
  return H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
}

// What H5Dwrite and H5Awrite take: the bytes, or pointers to the texts.
const void* memory_of(const Array& values, std::vector<const char*>& pointers) {
  if (values.type != Element::text) return values.bytes.data();
  for (const auto& text : values.text) pointers.push_back(text.c_str());
  return pointers.data();
}

}  // namespace

Hdf5Writer::Hdf5Writer(const std::string& path, std::string name, std::uint64_t user_block)
    : name_(std::move(name)) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const hid_t creation = H5Pcreate(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_userblock(creation, user_block);
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);  // lists of columns may exceed 64 KB
  file_ = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access);
  H5Pclose(creation);
  H5Pclose(access);
  check(file_, "the file");
}

Hdf5Writer::~Hdf5Writer() {
  if (file_ >= 0) H5Fclose(file_);
}

void Hdf5Writer::check(std::int64_t result, const std::string& what) const {
  if (result < 0) fail(Exit::failed, "{}: {} could not be written; is the disk full?", name_, what);
}

void Hdf5Writer::group(const std::string& at) {
  const hid_t id = H5Gcreate2(file_, at.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  check(id, at);
  H5Gclose(id);
}

void Hdf5Writer::dataset(const std::string& at, const Array& values) {
  const hid_t type = type_of(values.type), space = space_of(values);
  const hid_t id = H5Dcreate2(file_, at.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  std::vector<const char*> pointers;
  herr_t written = id < 0 ? -1 : 0;
  if (id >= 0 && values.count() > 0)
    written = H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory_of(values, pointers));
  if (id >= 0 && H5Dclose(id) < 0) written = -1;
  H5Sclose(space);
  H5Tclose(type);
  check(written, at);
}

void Hdf5Writer::attribute(const std::string& at, const std::string& name, const Array& values) {
  const hid_t type = type_of(values.type), space = space_of(values);
  const hid_t object = H5Oopen(file_, at.empty() ? "/" : at.c_str(), H5P_DEFAULT);
  const hid_t id = H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT);
  std::vector<const char*> pointers;
  herr_t written = id < 0 ? -1 : 0;
  if (id >= 0 && values.count() > 0) written = H5Awrite(id, type, memory_of(values, pointers));
  if (id >= 0) H5Aclose(id);
  if (object >= 0) H5Oclose(object);
  H5Sclose(space);
  H5Tclose(type);
  check(written, at + "/" + name);
}

void Hdf5Writer::close() {
  const hid_t file = file_;
  file_ = -1;
  check(H5Fclose(file), "the file");
}

}  // namespace lacuna
