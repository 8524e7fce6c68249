#include "data/native_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>

#include "base/error.h"
#include "base/text.h"
#include "data/formats.h"
#include "data/growing_array.h"
#include "data/native_toml.h"
#include "data/npy.h"
#include "data/release.h"

namespace lacuna {

struct NativeWriter::ViewFiles {
  std::string type;
  std::unique_ptr<GrowingArray> dense, values, index, start;
};

NativeWriter::NativeWriter(std::string path, Replaced replaced) : folder_(std::move(path), replaced) {}
NativeWriter::~NativeWriter() = default;

void NativeWriter::begin(const Dataset& part, const std::string& where) {
  first_where_ = where;
  shape_.name = part.name;
  shape_.source = part.source;
  shape_.licence = part.licence;
  shape_.label_names = part.label_names;
  const auto array = [&](const std::string& name, Element type, std::size_t cols, bool vector = false) {
    return std::make_unique<GrowingArray>(folder_.file(name), type, cols, vector);
  };
  for (const View& view : part.views) {
    const std::string stem = fmt::format("view{}", views_.size());
    ViewFiles files{view.source_type, nullptr, nullptr, nullptr, nullptr};
    View shape{view.name, Table<float>(), view.column_names, view.source_type};
    if (view.sparse()) {
      Csr none;
      none.columns = view.columns();
      shape.features = none;
      files.values = array(stem + ".values.npy", Element::f32, 1, true);
      files.index = array(stem + ".index.npy", Element::u32, 1, true);
      files.start = array(stem + ".start.npy", Element::u64, 1, true);
      const std::uint64_t zero = 0;
      files.start->add(std::span(&zero, 1));
    } else {
      shape.features = Table<float>(nullptr, {nullptr, 0, view.columns()});
      files.dense = array(stem + ".npy", Element::f32, view.columns());
    }
    shape_.views.push_back(std::move(shape));
    views_.push_back(std::move(files));
  }
  present_ = array("present.npy", Element::u8, part.views.size());
  if (!part.labels.empty()) labels_ = array("labels.npy", Element::i8, part.label_count());
  begun_ = true;
}

void NativeWriter::check_alike(const Dataset& part, const std::string& where) const {
  const auto& expected = shape_.views;
  for (const View& view : expected)
    if (part.view_index(view.name) == part.views.size())
      fail(Exit::data, "{}: has no view '{}', which {} has; all parts need the same views", where, view.name,
           first_where_);
  for (const View& view : part.views)
    if (shape_.view_index(view.name) == expected.size())
      fail(Exit::data, "{}: has a view '{}', which {} does not have; all parts need the same views", where,
           view.name, first_where_);
  for (std::size_t v = 0; v < expected.size(); ++v) {
    const View& view = part.views[v];
    if (view.name != expected[v].name)
      fail(Exit::data, "{}: view {} is '{}', in {} it is '{}'; all parts need the same order", where, v,
           view.name, first_where_, expected[v].name);
    if (view.columns() != expected[v].columns())
      fail(Exit::data, "{}: view '{}' has {} columns, in {} it has {}", where, view.name, view.columns(),
           first_where_, expected[v].columns());
    const auto &names = view.column_names, &others = expected[v].column_names;
    if (names.empty() != others.empty())
      fail(Exit::data, "{}: view '{}' has {} names of columns, in {} it has {}", where, view.name,
           names.size(), first_where_, others.size());
    const auto [at, other] = std::mismatch(names.begin(), names.end(), others.begin());
    if (at != names.end())
      fail(Exit::data,
           "{}: column {} of view '{}' is '{}', in {} it is '{}'; all parts need the same columns", where,
           at - names.begin(), view.name, *at, first_where_, *other);
  }
  if (part.labels.empty() != (labels_ == nullptr))
    fail(Exit::data, "{}: has {} labels, {} has {}", where, part.labels.empty() ? 0 : part.label_count(),
         first_where_, labels_ == nullptr ? 0 : shape_.label_count());
  for (const auto* from : {&part, &shape_})
    for (const auto& name : from->label_names) {
      const auto& others = from == &part ? shape_.label_names : part.label_names;
      if (std::ranges::find(others, name) == others.end())
        fail(Exit::data, "{}: has no label '{}', which {} has; give the labels of all parts the same columns",
             from == &part ? first_where_ : where, name, from == &part ? where : first_where_);
    }
  if (part.label_names != shape_.label_names)
    fail(Exit::data, "{}: has the labels of {} in another order", where, first_where_);
  if (part.ids.empty() != ids_.empty())
    fail(Exit::data, "{}: has {}, {} has {}; give ids to all parts or to none", where,
         part.ids.empty() ? "no ids" : "ids", first_where_, ids_.empty() ? "none" : "some");
}

void NativeWriter::append(const Dataset& part, const std::string& where) {
  append(part, where, 0, part.rows);
}

void NativeWriter::append(const Dataset& part, const std::string& where, std::size_t first,
                          std::size_t count) {
  if (part.empty_cells)
    fail(Exit::data, "{}: has empty cells, which a data set in a stream cannot have; --empty zero fills them",
         where);
  if (!begun_)
    begin(part, where);
  else
    check_alike(part, where);
  append_ids(part, where, first, count);
  constexpr std::size_t kSlab = 4096;
  for (std::size_t done = 0; done < count; done += kSlab) {
    const std::size_t rows = std::min(kSlab, count - done);
    for (std::size_t v = 0; v < views_.size(); ++v) append_view(part, v, first + done, rows);
    append_labels(part, first + done, rows);
  }
  rows_ += count;
}

void NativeWriter::append_view(const Dataset& part, std::size_t v, std::size_t first, std::size_t count) {
  const View& view = part.views[v];
  ViewFiles& files = views_[v];
  if (view.source_type != files.type) files.type = "float32";
  const auto* csr = std::get_if<Csr>(&view.features);
  std::vector<float> row(view.columns());
  for (std::size_t i = first; i < first + count; ++i) {
    const bool there = part.has(i, v);
    if (files.dense != nullptr) {
      if (there)
        view.copy_row(i, row);
      else
        std::ranges::fill(row, 0.f);
      files.dense->add(std::span<const float>(row));
      continue;
    }
    if (csr != nullptr) {
      const std::uint64_t begin = csr->start(0, i), length = there ? csr->start(0, i + 1) - begin : 0;
      files.index->add(csr->index.row(0).subspan(begin, length));
      files.values->add(csr->value.row(0).subspan(begin, length));
    } else if (there) {
      view.copy_row(i, row);
      for (std::uint32_t j = 0; j < row.size(); ++j) {
        if (row[j] == 0) continue;
        files.index->add(std::span<const std::uint32_t>(&j, 1));
        files.values->add(std::span<const float>(&row[j], 1));
      }
    }
    const std::uint64_t end = files.values->count();
    files.start->add(std::span(&end, 1));
  }
  release_rows(view, first, count);
}

void NativeWriter::append_ids(const Dataset& part, const std::string& where, std::size_t first,
                              std::size_t count) {
  if (part.ids.empty()) return;
  if (parts_.empty() || parts_.back() != where) parts_.push_back(where);
  for (std::size_t i = first; i < first + count; ++i) {
    const auto [at, is_new] = part_of_id_.try_emplace(part.ids[i], parts_.size() - 1);
    if (!is_new) fail(Exit::data, "{}: the id '{}' is in {} already", where, part.ids[i], parts_[at->second]);
    ids_.push_back(part.ids[i]);
  }
}

void NativeWriter::append_labels(const Dataset& part, std::size_t first, std::size_t count) {
  std::vector<std::uint8_t> here(part.views.size());
  for (std::size_t i = first; i < first + count; ++i) {
    for (std::size_t v = 0; v < here.size(); ++v) {
      here[v] = part.has(i, v);
      complete_ = complete_ && here[v] != 0;
    }
    present_->add(std::span<const std::uint8_t>(here));
    if (labels_ != nullptr) labels_->add(part.labels.row(i));
  }
}

void NativeWriter::keep(const std::string& name, GrowingArray& array) {
  checksums_.files[name] = array.finish();
}

void NativeWriter::keep_texts(const std::string& name, const std::vector<std::string>& texts) {
  const Array array = text_array("", texts);
  write_npy(folder_.file(name), array);
  BlockChecksums sums;
  sums.add(as_bytes(npy_text(array)));
  checksums_.files[name] = sums.finish();
}

std::string NativeWriter::finish_view(std::size_t v) {
  const View& view = shape_.views[v];
  const ViewFiles& files = views_[v];
  const std::string stem = fmt::format("view{}", v);
  std::string toml =
      fmt::format("\n[[views]]\nname = {}\ntype = {}\n", toml_text(view.name), toml_text(files.type));
  if (files.dense != nullptr) {
    keep(stem + ".npy", *files.dense);
    toml += fmt::format("file = \"{}.npy\"\n", stem);
  } else {
    keep(stem + ".values.npy", *files.values);
    keep(stem + ".index.npy", *files.index);
    keep(stem + ".start.npy", *files.start);
    toml += fmt::format(
        "width = {1}\nvalues = \"{0}.values.npy\"\nindex = \"{0}.index.npy\"\nstart = \"{0}.start.npy\"\n",
        stem, view.columns());
  }
  if (!view.column_names.empty()) {
    keep_texts(stem + ".columns.npy", view.column_names);
    toml += fmt::format("columns = \"{}.columns.npy\"\n", stem);
  }
  return toml;
}

void NativeWriter::commit() {
  assert(begun_);
  shape_.rows = rows_;
  std::string toml = toml_top(shape_) + "checked = true\n";
  if (!ids_.empty()) {
    keep_texts("ids.npy", ids_);
    toml += "ids = \"ids.npy\"\n";
  }
  if (!complete_) {
    keep("present.npy", *present_);
    toml += "present = \"present.npy\"\n";
  } else {
    present_.reset();
    ::unlink(folder_.file("present.npy").c_str());
  }
  for (std::size_t v = 0; v < views_.size(); ++v) toml += finish_view(v);
  if (labels_ != nullptr) {
    keep("labels.npy", *labels_);
    keep_texts("label_names.npy", shape_.label_names);
    toml += "\n[labels]\nfile = \"labels.npy\"\ncode = \"01-unknown\"\nnames = \"label_names.npy\"\n";
  }
  write_text(folder_.file(kChecksumsFile), checksums_.text());
  folder_.commit(toml);
}

}  // namespace lacuna
