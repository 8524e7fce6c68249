// Level 7.3 MATLAB files are HDF5 files, read through libmatio. Neither library was written for hostile
// input, so a child process reads the file and sends the values.
#include <matio.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/child.h"
#include "data/convert.h"
#include "data/flat_table.h"
#include "data/mat5.h"
#include "data/mat_handles.h"
#include "data/names.h"

namespace lacuna {
namespace {

constexpr unsigned kSeconds = 600;  // of processor time for the child

// ---- child: from libmatio's variables to ours

const char* class_name(const matvar_t& v) {
  if (v.isLogical != 0) return "logical";
  switch (v.class_type) {
    case MAT_C_CELL:
      return "cell";
    case MAT_C_STRUCT:
      return "struct";
    case MAT_C_CHAR:
      return "char";
    case MAT_C_SPARSE:
      return "sparse";
    case MAT_C_DOUBLE:
      return "float64";
    case MAT_C_SINGLE:
      return "float32";
    case MAT_C_INT8:
      return "int8";
    case MAT_C_UINT8:
      return "uint8";
    case MAT_C_INT16:
      return "int16";
    case MAT_C_UINT16:
      return "uint16";
    case MAT_C_INT32:
      return "int32";
    case MAT_C_UINT32:
      return "uint32";
    case MAT_C_INT64:
      return "int64";
    case MAT_C_UINT64:
      return "uint64";
    default:
      return "object";
  }
}

// f(S{}) with the C++ type of the stored numbers.
template <class F>
void with_type(matio_types type, const std::string& where, F&& f) {
  switch (type) {
    case MAT_T_INT8:
      return f(std::int8_t{});
    case MAT_T_UINT8:
      return f(std::uint8_t{});
    case MAT_T_INT16:
      return f(std::int16_t{});
    case MAT_T_UINT16:
      return f(std::uint16_t{});
    case MAT_T_INT32:
      return f(std::int32_t{});
    case MAT_T_UINT32:
      return f(std::uint32_t{});
    case MAT_T_INT64:
      return f(std::int64_t{});
    case MAT_T_UINT64:
      return f(std::uint64_t{});
    case MAT_T_SINGLE:
      return f(float{});
    case MAT_T_DOUBLE:
      return f(double{});
    default:
      fail(Exit::data, "{}: has numbers of unknown type {}", where, static_cast<int>(type));
  }
}

class Converter {
 public:
  explicit Converter(const std::string& path, std::uint64_t bytes) : path_(path), bytes_(bytes) {}

  // Before the data is read: what the header promises must be possible.
  void check_sizes(const matvar_t& v, int depth = 0) const {
    if (depth > kDeepestCell) fail(Exit::data, "{}: cells are nested deeper than {}", path_, kDeepestCell);
    std::uint64_t count = 1;
    bool fits = v.rank >= 2 && v.rank <= 8 && v.dims != nullptr;
    for (int i = 0; i < v.rank && fits; ++i) fits = !__builtin_mul_overflow(count, v.dims[i], &count);
    if (!fits || count / 1032 > bytes_)
      fail(Exit::data, "{}: '{}' promises more values than {} bytes can hold", path_, name_of(v), bytes_);
    if (v.class_type == MAT_C_CELL && v.data != nullptr && v.data_size > 0) {
      auto** cells = static_cast<matvar_t**>(v.data);
      for (std::uint64_t i = 0; i < count && i < v.nbytes / sizeof(matvar_t*); ++i)
        if (cells[i] != nullptr) check_sizes(*cells[i], depth + 1);
    }
  }

  MatValue value(const matvar_t& v, int depth = 0) const {
    MatValue out;
    out.name = name_of(v);
    out.type = class_name(v);
    for (int i = 0; i < v.rank; ++i) out.shape.push_back(v.dims[i]);
    const std::uint64_t rows = out.shape[0];
    std::uint64_t cols = 1;
    for (std::size_t i = 1; i < out.shape.size(); ++i) cols *= out.shape[i];
    const std::string where = fmt::format("{}: '{}'", path_, out.name);
    if (v.isComplex != 0) fail(Exit::data, "{} contains complex numbers", where);
    if (v.class_type == MAT_C_CELL) {
      auto** cells = static_cast<matvar_t**>(v.data);
      const std::uint64_t there = v.data == nullptr ? 0 : v.nbytes / sizeof(matvar_t*);
      if (there < rows * cols) fail(Exit::data, "{} has {} cells, {} were read", where, rows * cols, there);
      for (std::uint64_t i = 0; i < rows * cols; ++i) {
        if (cells[i] == nullptr || cells[i]->rank < 2)
          fail(Exit::data, "{}: cell {} cannot be read", where, i + 1);
        check_sizes(*cells[i], depth + 1);
        out.cells.push_back(value(*cells[i], depth + 1));
        out.cells.back().name = fmt::format("{}{{{}}}", out.name, i + 1);
      }
    } else if (v.class_type == MAT_C_CHAR) {
      if (v.data != nullptr) text(v, rows, cols, out);
    } else if (v.class_type == MAT_C_SPARSE) {
      sparse(v, rows, cols, where, out);
    } else if (v.class_type >= MAT_C_DOUBLE && v.class_type <= MAT_C_UINT64 && rows * cols > 0) {
      if (v.data == nullptr || v.nbytes / static_cast<std::size_t>(std::max(1, v.data_size)) < rows * cols)
        fail(Exit::data, "{} is {} x {} but its data could not be read", where, rows, cols);
      out.values = numbers(v.data_type, v.data, rows, cols, out.name, where);
    }
    return out;
  }

 private:
  static std::string name_of(const matvar_t& v) { return v.name == nullptr ? "" : utf8_or_latin1(v.name); }

  Matrix<float> numbers(matio_types type, const void* data, std::uint64_t rows, std::uint64_t cols,
                        const std::string& name, const std::string& where) const {
    Matrix<float> out(rows, cols);
    with_type(type, where, [&]<class S>(S) {
      const S* from = static_cast<const S*>(data);
      for (std::uint64_t j = 0; j < cols; ++j)
        for (std::uint64_t i = 0; i < rows; ++i)
          if (!to_float(from[j * rows + i], out(i, j))) refuse_float(path_, name, i, j, from[j * rows + i]);
    });
    return out;
  }

  void text(const matvar_t& v, std::uint64_t rows, std::uint64_t cols, MatValue& out) const {
    const std::uint64_t units = v.nbytes / static_cast<std::size_t>(std::max(1, v.data_size));
    for (std::uint64_t i = 0; i < rows; ++i) {
      std::u32string row;
      std::string bytes;
      for (std::uint64_t j = 0; j < cols && j * rows + i < units; ++j) {
        const std::uint64_t at = j * rows + i;
        if (v.data_size == 1) {
          bytes += static_cast<const char*>(v.data)[at];
          continue;
        }
        const char32_t unit = v.data_size == 2 ? static_cast<const std::uint16_t*>(v.data)[at]
                                               : static_cast<const std::uint32_t*>(v.data)[at];
        if (unit >= 0xDC00 && unit < 0xE000 && !row.empty() && row.back() >= 0xD800 && row.back() < 0xDC00)
          row.back() = 0x10000 + ((row.back() - 0xD800) << 10) + (unit - 0xDC00);
        else if (unit != 0)
          row += unit;
      }
      std::string line = v.data_size == 1 ? utf8_or_latin1(bytes) : from_code_points(row);
      if (rows > 1) line.resize(line.find_last_not_of(' ') + 1);
      out.text.push_back(std::move(line));
    }
  }

  void sparse(const matvar_t& v, std::uint64_t rows, std::uint64_t cols, const std::string& where,
              MatValue& out) const {
    const auto* s = static_cast<const mat_sparse_t*>(v.data);
    if (s == nullptr || s->jc == nullptr || s->njc != cols + 1 ||
        (s->ndata > 0 && (s->ir == nullptr || s->data == nullptr)))
      fail(Exit::data, "{}: the sparse matrix could not be read", where);
    check_backed(rows, bytes_, "rows", where);
    const std::uint64_t count = s->jc[cols];
    if (count > s->ndata || count > s->nir)
      fail(Exit::data, "{}: claims {} values, has {}", where, count, s->ndata);
    Csr columns;  // of the file: compressed columns are the compressed rows of the transposed matrix
    Matrix<std::uint64_t> start(1, cols + 1);
    Matrix<std::uint32_t> index(1, count);
    for (std::uint64_t j = 0; j <= cols; ++j) start(0, j) = s->jc[j];
    for (std::uint64_t k = 0; k < count; ++k) index(0, k) = s->ir[k];
    columns.start = std::move(start);
    columns.index = std::move(index);
    columns.value = numbers(v.data_type, s->data, 1, count, out.name, where);
    columns.columns = rows;
    View view{out.name, std::move(columns), {}, ""};
    check_sparse(view, where);
    out.sparse = transposed(std::get<Csr>(view.features));
  }

  const std::string& path_;
  std::uint64_t bytes_;
};

// ---- from the child to its parent: values as bytes

void put_value(Channel& channel, const MatValue& v) {
  channel.put_text(v.name);
  channel.put_text(v.type);
  channel.put_number(v.shape.size());
  for (auto size : v.shape) channel.put_number(size);
  channel.put_table(v.values);
  channel.put_number(v.sparse ? v.sparse->columns : 0);
  if (v.sparse) {
    channel.put_table(v.sparse->start);
    channel.put_table(v.sparse->index);
    channel.put_table(v.sparse->value);
  }
  channel.put_number(v.text.size());
  for (const auto& line : v.text) channel.put_text(line);
  channel.put_number(v.cells.size());
  for (const auto& cell : v.cells) put_value(channel, cell);
}

MatValue get_value(Channel& channel, int depth = 0) {
  if (depth > kDeepestCell + 1) throw Broken();
  MatValue v;
  v.name = channel.get_text();
  v.type = channel.get_text();
  v.shape.resize(std::min<std::uint64_t>(channel.get_count(), 8));
  for (auto& size : v.shape) size = channel.get_number();
  v.values = channel.get_table<float>();
  if (const std::uint64_t columns = channel.get_number(); columns != 0) {
    Matrix<std::uint64_t> start = channel.get_table<std::uint64_t>();
    Matrix<std::uint32_t> index = channel.get_table<std::uint32_t>();
    v.sparse = Csr{std::move(start), std::move(index), channel.get_table<float>(), columns};
  }
  v.text.resize(channel.get_count());
  for (auto& line : v.text) line = channel.get_text();
  for (std::uint64_t i = channel.get_count(); i > 0; --i) v.cells.push_back(get_value(channel, depth + 1));
  return v;
}

enum Message : std::uint64_t { kLast, kValue, kError };

void send_values(const std::string& path, std::uint64_t bytes, const std::vector<std::string>& names,
                 Channel& channel) {
  try {
    const MatHandle mat(Mat_Open(path.c_str(), MAT_ACC_RDONLY));
    if (!mat)
      fail(Exit::data,
           "{}: is not a MATLAB file of level 7.3 that libmatio can open; it may be cut off or damaged", path);
    const Converter converter(path, bytes);
    while (Variable variable{Mat_VarReadNextInfo(mat.get())}) {
      const std::string name = variable->name == nullptr ? "" : variable->name;
      if (!names.empty() && std::ranges::find(names, name) == names.end()) continue;
      if (variable->class_type == MAT_C_STRUCT || variable->class_type == MAT_C_FUNCTION ||
          variable->class_type == MAT_C_OPAQUE)
        continue;
      converter.check_sizes(*variable);
      if (Mat_VarReadDataAll(mat.get(), variable.get()) != 0)
        fail(Exit::data, "{}: the values of '{}' could not be read; the file may be damaged", path,
             utf8_or_latin1(name));
      const MatValue value = converter.value(*variable);
      variable.reset();
      channel.put_number(kValue);
      put_value(channel, value);
    }
    channel.put_number(kLast);
  } catch (const std::exception& error) {
    channel.put_number(kError);
    channel.put_text(error.what());
  }
}

}  // namespace

std::vector<MatValue> read_mat73(const std::string& path, const std::vector<std::string>& names) {
  const std::uint64_t bytes = MappedFile::open(path)->size();
  Child child(path, 1032 * (bytes + 4096),
              {.seconds = kSeconds, .memory = (std::uint64_t{256} << 20) + 4 * 1032 * bytes},
              [&](Channel& channel) { send_values(path, bytes, names, channel); });
  try {
    std::vector<MatValue> values;
    for (;;) {
      const std::uint64_t message = child.channel().get_number();
      if (message == kLast) return values;
      if (message == kError) throw Error(Exit::data, child.channel().get_text());
      values.push_back(get_value(child.channel()));
    }
  } catch (const Broken&) {
    child.fail_broken("libmatio");
  }
}

}  // namespace lacuna
