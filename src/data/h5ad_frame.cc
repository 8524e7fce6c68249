#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "data/convert.h"
#include "data/h5ad.h"
#include "data/names.h"

namespace lacuna {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

std::string place(const Hdf5File& file, const std::string& at) {
  return fmt::format("{}: '{}'", file.path(), at);
}

// One text per value; whole numbers as they are printed.
std::vector<std::string> as_texts(const Array& array, const std::string& where) {
  std::vector<std::string> out;
  if (array.type == Element::text) {
    for (const auto& text : array.text) out.push_back(utf8_or_latin1(text));
    return out;
  }
  if (array.type == Element::boolean) {
    for (auto byte : array.bytes) out.emplace_back(byte == std::byte{0} ? "False" : "True");
    return out;
  }
  if (array.shape.size() != 1)
    fail(Exit::data, "{}: has shape {}, expected one value per row", where, shape_text(array.shape));
  with_element(array.type, [&]<class S>(S value) {  // as it is stored: float32 would round long ids
    for (std::size_t at = 0; at + sizeof(S) <= array.bytes.size(); at += sizeof(S)) {
      std::memcpy(&value, array.bytes.data() + at, sizeof(S));
      out.push_back(fmt::format("{}", number_of(value)));
    }
  });
  return out;
}

bool blank(std::string_view text) {
  static constexpr std::string_view kBlanks[] = {"", "nan", "NaN", "NA", "<NA>", "?"};
  return std::ranges::find(kBlanks, trim(text)) != std::end(kBlanks);
}

FrameColumn from_texts(const std::vector<std::string>& texts) {
  FrameColumn column{FrameColumn::Kind::categories, {}, {}, {}};
  std::unordered_map<std::string, std::int32_t> seen;
  for (const auto& text : texts) {
    if (blank(text)) {
      column.codes.push_back(-1);
      continue;
    }
    const auto [at, fresh] = seen.emplace(text, static_cast<std::int32_t>(seen.size()));
    if (fresh) column.categories.push_back(text);
    column.codes.push_back(at->second);
  }
  return column;
}

FrameColumn from_codes(const Array& codes, std::vector<std::string> categories, const std::string& where) {
  FrameColumn column{FrameColumn::Kind::categories, {}, {}, {}};
  std::vector<std::int32_t> place;  // of each category of the file among those that are none of the blanks
  for (auto& name : categories) {
    place.push_back(blank(name) ? -1 : static_cast<std::int32_t>(column.categories.size()));
    if (place.back() >= 0) column.categories.push_back(std::move(name));
  }
  const auto numbers = to_integers<std::int64_t>(codes, where);
  for (auto code : numbers.values()) {
    if (code < -1 || code >= static_cast<std::int64_t>(place.size()))
      fail(Exit::data, "{}: the code {} has no category; there are {}", where, code, place.size());
    column.codes.push_back(code < 0 ? -1 : place[static_cast<std::size_t>(code)]);
  }
  return column;
}

FrameColumn from_array(const Array& array, const std::string& where) {
  if (array.shape.size() != 1)
    fail(Exit::data, "{}: has shape {}, expected one value per row", where, shape_text(array.shape));
  if (array.type == Element::text) return from_texts(as_texts(array, where));
  FrameColumn column{
      array.type == Element::boolean ? FrameColumn::Kind::boolean : FrameColumn::Kind::number, {}, {}, {}};
  const Table<float> values = to_floats(array, where);
  for (std::size_t i = 0; i < values.rows(); ++i) column.values.push_back(values(i, 0));
  return column;
}

void hide(FrameColumn& column, const Array& mask, const std::string& where) {
  const auto hidden = to_integers<std::uint8_t>(mask, where);
  if (hidden.rows() != column.rows())
    fail(Exit::data, "{}: the mask has {} values, the column {}", where, hidden.rows(), column.rows());
  for (std::size_t i = 0; i < hidden.rows(); ++i) {
    if (hidden(i, 0) == 0) continue;
    if (column.kind == FrameColumn::Kind::categories)
      column.codes[i] = -1;
    else
      column.values[i] = kMissing;
  }
}

}  // namespace

bool is_frame(Hdf5File& file, const std::string& at) {
  return file.is_group(at) && file.text_attribute(at, "encoding-type") == "dataframe";
}

std::vector<std::string> texts_at(Hdf5File& file, const std::string& at) {
  if (!file.is_group(at)) return as_texts(file.read(at), place(file, at));
  if (file.has(at + "/values")) return as_texts(file.read(at + "/values"), place(file, at));
  const auto categories = texts_at(file, at + "/categories");
  std::vector<std::string> out;
  const auto codes = to_integers<std::int64_t>(file.read(at + "/codes"), place(file, at));
  for (auto code : codes.values()) {
    if (code < 0 || code >= static_cast<std::int64_t>(categories.size()))
      fail(Exit::data, "{}: the code {} has no category; there are {}", place(file, at), code,
           categories.size());
    out.push_back(categories[static_cast<std::size_t>(code)]);
  }
  return out;
}

Frame::Frame(Hdf5File& file, std::string at, std::string uns)
    : file_(file), at_(std::move(at)), uns_(std::move(uns)) {
  const auto kind = file_.info(at_).kind;
  if (kind == Hdf5File::Kind::absent)
    fail(Exit::data, "{}: has no '{}'; is it an AnnData file?", file.path(), at_);
  if (kind == Hdf5File::Kind::dataset) {
    columns_ = file_.fields(at_);
    if (columns_.empty()) fail(Exit::data, "{}: is not a data frame", place(file_, at_));
    compound_ = true;
    index_ = columns_.front();
    columns_.erase(columns_.begin());
    return;
  }
  index_ = file_.text_attribute(at_, "_index");
  if (index_.empty())
    fail(Exit::data, "{}: does not say which of its columns are the names (_index)", place(file_, at_));
  if (const auto order = file_.attribute(at_, "column-order"); order && order->type == Element::text)
    columns_ = order->text;
}

std::vector<std::string> Frame::names() const {
  const std::string where = place(file_, at_);
  return compound_ ? as_texts(file_.read(at_, index_), where) : texts_at(file_, at_ + "/" + index_);
}

bool Frame::has(const std::string& column) const {
  return std::ranges::find(columns_, column) != columns_.end();
}

FrameColumn Frame::column(const std::string& name) const {
  if (!has(name))
    fail(Exit::usage, "{}: has no column '{}'{}; it has {}", place(file_, at_), name,
         did_you_mean(name, columns_), some(columns_, 20));
  return series(name);
}

FrameColumn Frame::series(const std::string& name) const {
  const std::string at = at_ + "/" + name, where = place(file_, at);
  if (compound_) {
    const Array values = file_.read(at_, name);
    const std::string categories = uns_ + "/" + name + "_categories";
    return file_.has(categories) ? from_codes(values, texts_at(file_, categories), where)
                                 : from_array(values, where);
  }
  if (!file_.is_group(at)) {
    const Array values = file_.read(at);
    const std::string categories = at_ + "/__categories/" + name;  // anndata 0.7
    return file_.has(categories) ? from_codes(values, texts_at(file_, categories), where)
                                 : from_array(values, where);
  }
  if (file_.has(at + "/codes"))
    return from_codes(file_.read(at + "/codes"), texts_at(file_, at + "/categories"), where);
  if (!file_.has(at + "/values"))
    fail(Exit::data, "{}: is encoded as '{}', which this program does not read", where,
         file_.text_attribute(at, "encoding-type"));
  FrameColumn column = from_array(file_.read(at + "/values"), where);
  if (file_.has(at + "/mask")) hide(column, file_.read(at + "/mask"), where);
  return column;
}

}  // namespace lacuna
