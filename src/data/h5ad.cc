// .h5ad (AnnData) and .h5mu (MuData) as data sets. In .h5ad X is the view; in .h5mu the X of each modality,
// for the observations that it has. Items are joined by the names of their observations.
//   --views X,pca=obsm/X_pca          --views rna,prot,counts=rna/layers/counts
//   --labels celltype,obs:treated     --labels rna/obs:celltype,obsm:tags
#include "data/h5ad.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "data/formats.h"
#include "data/h5ad_labels.h"
#include "data/names.h"

namespace lacuna {
namespace {

constexpr const char* kOurs = "uns/lacuna";  // what AnnData has no place for: names, which columns are labels

// The file itself, or one modality of it: a table of observations.
struct Modality {
  std::string name;  // "" = the file itself
  std::string at;    // "" or "mod/NAME/"
  std::vector<std::string> names{};
  std::vector<std::int64_t> rows{};  // of each item; -1 = it is not there; empty = the same order
};

bool just_numbered(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] != std::to_string(i)) return false;
  return true;
}

// As anndata's var_names_make_unique does it: the second A becomes A-1. Gives a note, or nothing.
std::string make_unique(std::vector<std::string>& names, const std::string& view) {
  std::unordered_map<std::string, std::size_t> numbers;  // the last one that each name got
  for (const auto& name : names) numbers.emplace(name, 0);
  std::unordered_set<std::string> met;
  std::string example;
  std::size_t changed = 0;
  for (auto& name : names) {
    if (met.insert(name).second) continue;
    const std::string stem = name;
    do {
      name = fmt::format("{}-{}", stem, ++numbers[stem]);
    } while (numbers.contains(name));
    numbers.emplace(name, 0);
    met.insert(name);
    if (++changed == 1) example = fmt::format("the second '{}' is called '{}'", stem, name);
  }
  if (changed == 0) return "";
  return fmt::format("{} of the variable names of '{}' are duplicates; {}", changed, view, example);
}

class H5adReader {
 public:
  H5adReader(const std::string& path, const ReadOptions& options) : file_(path), options_(options) {}

  Dataset read() {
    find_modalities();
    find_items();
    read_names();
    read_views();
    read_labels();
    note_what_is_left();
    return std::move(data_);
  }

 private:
  const std::string& path() const { return file_.path(); }
  bool several() const { return modalities_.size() > 1 || !modalities_[0].name.empty(); }

  void find_modalities() {
    if (!file_.is_group("mod")) {
      modalities_.push_back({"", ""});
      return;
    }
    if (const auto axis = file_.attribute("", "axis"); axis && axis->type != Element::text &&
                                                       axis->count() == 1 &&
                                                       to_integers<std::int64_t>(*axis, path())(0, 0) == 1)
      fail(Exit::data, "{}: its modalities share variables (axis 1), not observations, so they are not views",
           path());
    const auto children = file_.children("mod");
    std::set<std::string> left(children.begin(), children.end());
    if (const auto order = file_.attribute("mod", "mod-order"); order && order->type == Element::text)
      for (const auto& name : order->text)
        if (left.erase(name) > 0) modalities_.push_back({name, "mod/" + name + "/"});
    for (const auto& name : left) modalities_.push_back({name, "mod/" + name + "/"});
    if (modalities_.empty()) modalities_.push_back({"", ""});  // labels alone
  }

  std::vector<std::string> observations(const std::string& at) {
    auto names = Frame(file_, at + "obs", at + "uns").names();
    std::unordered_map<std::string_view, std::size_t> seen;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (const auto [other, fresh] = seen.emplace(names[i], i); !fresh)
        fail(Exit::data,
             "{}: rows {} and {} of '{}obs' are both called '{}', so nothing can be joined by name; "
             "obs_names_make_unique() of anndata gives each its own",
             path(), other->second, i, at, names[i]);
    return names;
  }

  // Items are those of the whole, in its order, and behind them what only a modality knows.
  void find_items() {
    for (auto& modality : modalities_) modality.names = observations(modality.at);
    if (several() && file_.has("obs")) {
      root_ = modalities_.size();
      modalities_.push_back({"", "", observations("")});
    }
    std::unordered_map<std::string_view, std::uint32_t> place;
    const auto add = [&](const Modality& modality) {
      for (const auto& name : modality.names)
        if (place.emplace(name, static_cast<std::uint32_t>(data_.ids.size())).second)
          data_.ids.push_back(name);
    };
    if (root_ < modalities_.size()) add(modalities_[root_]);
    for (const auto& modality : modalities_) add(modality);
    data_.rows = data_.ids.size();
    for (auto& modality : modalities_) {
      if (modality.names == data_.ids) continue;
      modality.rows.assign(data_.rows, -1);
      for (std::size_t i = 0; i < modality.names.size(); ++i)
        modality.rows[place.at(modality.names[i])] = static_cast<std::int64_t>(i);
    }
    if (just_numbered(data_.ids)) data_.ids.clear();
  }

  void read_names() {
    const auto text = [&](const char* key) -> std::string {
      const std::string at = fmt::format("{}/{}", kOurs, key);
      if (!file_.has(at)) return "";
      const auto texts = texts_at(file_, at);
      return texts.size() == 1 ? texts[0] : "";
    };
    data_.name = text("name");
    data_.source = text("source");
    data_.licence = text("licence");
  }
  std::vector<std::string> our_list(const char* key) {
    const std::string at = fmt::format("{}/{}", kOurs, key);
    return file_.has(at) ? texts_at(file_, at) : std::vector<std::string>();
  }

  // Splits "rna/obsm/X_pca" into the modality and the rest; what names no modality belongs to the file
  // itself.
  std::pair<std::size_t, std::string> split_modality(const std::string& text) const {
    for (std::size_t k = 0; k < modalities_.size(); ++k) {
      const std::string& name = modalities_[k].name;
      if (name.empty()) continue;
      if (text == name) return {k, "X"};
      if (text.starts_with(name + "/")) return {k, text.substr(name.size() + 1)};
    }
    return {several() ? root_ : 0, text};
  }

  std::vector<std::string> choices() {
    std::vector<std::string> out;
    for (const auto& modality : modalities_) {
      const std::string prefix = modality.name.empty() ? "" : modality.name + "/";
      if (file_.has(modality.at + "X")) out.push_back(modality.name.empty() ? "X" : modality.name);
      for (const char* group : {"obsm", "layers"})
        for (const auto& key : keys(modality.at + group))
          if (!modality.name.empty() || !is_modality(key))
            out.push_back(fmt::format("{}{}/{}", prefix, group, key));
    }
    return out;
  }
  std::vector<std::string> keys(const std::string& group) {
    return file_.is_group(group) ? file_.children(group) : std::vector<std::string>();
  }
  // At the root of .h5mu files obsm has a mask for each modality.
  bool is_modality(const std::string& name) const {
    return std::ranges::any_of(modalities_, [&](const auto& m) { return !m.name.empty() && m.name == name; });
  }

  void read_views() {
    std::vector<std::pair<std::string, std::string>> wanted;  // name, where
    const auto ours = our_list("view_names");
    for (const auto& text : options_.views) {
      const auto equals = text.find('=');
      const std::string where = equals == std::string::npos ? text : text.substr(equals + 1);
      wanted.emplace_back(equals == std::string::npos ? plain_name(where) : text.substr(0, equals), where);
    }
    if (wanted.empty())
      for (const auto& modality : modalities_) {
        if ((&modality - modalities_.data()) == static_cast<std::ptrdiff_t>(root_) ||
            !file_.has(modality.at + "X"))
          continue;
        wanted.emplace_back(wanted.size() < ours.size() ? ours[wanted.size()]
                            : modality.name.empty()     ? "X"
                                                        : utf8_or_latin1(modality.name),
                            modality.name.empty() ? "X" : modality.name + "/X");
      }
    bool gaps = false;
    Matrix<std::uint8_t> present(data_.rows, wanted.size());
    for (const auto& [name, where] : wanted) {
      const auto [k, rest] = split_modality(where);
      const std::size_t v = data_.views.size();
      data_.views.push_back(read_view(name, where, k, rest));
      const auto& rows = modalities_[k].rows;
      for (std::size_t i = 0; i < data_.rows; ++i) present(i, v) = rows.empty() || rows[i] >= 0 ? 1 : 0;
      gaps = gaps || !std::ranges::all_of(rows, [](auto row) { return row >= 0; });
    }
    if (gaps) data_.present = std::move(present);
  }

  std::string plain_name(const std::string& where) const {  // rna/obsm/X_pca -> rna/X_pca, rna/X -> rna
    auto [k, rest] = split_modality(where);
    const std::string& modality = k < modalities_.size() ? modalities_[k].name : "";
    for (const char* group : {"obsm/", "obsm:", "layers/", "layers:"})
      if (rest.starts_with(group)) rest.erase(0, std::string_view(group).size());
    return utf8_or_latin1(modality.empty() ? rest : rest == "X" ? modality : modality + "/" + rest);
  }

  View read_view(const std::string& name, const std::string& where, std::size_t k, std::string rest) {
    for (const char* group : {"obsm", "layers", "raw"})  // obsm:KEY is obsm/KEY
      if (rest.starts_with(std::string(group) + ":")) rest[std::string_view(group).size()] = '/';
    const bool known =
        rest == "X" || rest == "raw/X" || rest.starts_with("obsm/") || rest.starts_with("layers/");
    if (k >= modalities_.size() || !known || !file_.has(modalities_[k].at + rest)) {
      const auto there = choices();
      fail(Exit::usage, "{}: has no matrix '{}'{}; --views takes {}", path(), where,
           did_you_mean(where, there), some(there, 20));
    }
    const Modality& modality = modalities_[k];
    FileMatrix matrix = matrix_at(file_, modality.at + rest);
    View view{name, std::move(matrix.features), std::move(matrix.column_names), matrix.source_type};
    if (view.rows() != modality.names.size())
      fail(Exit::data, "{}: '{}' has {} rows, but there are {} observations", path(), where, view.rows(),
           modality.names.size());
    if (!rest.starts_with("obsm/")) {
      auto names =
          Frame(file_, modality.at + (rest == "raw/X" ? "raw/var" : "var"), modality.at + "uns").names();
      if (names.size() != view.columns())
        fail(Exit::data, "{}: '{}' has {} columns, but there are {} variables", path(), where, view.columns(),
             names.size());
      if (const std::string note = make_unique(names, name); !note.empty()) data_.notes.push_back(note);
      if (!just_numbered(names)) view.column_names = std::move(names);
    }
    if (!modality.rows.empty()) {
      if (!view.sparse()) check_room(view, where);
      view.features = gather_rows(view, modality.rows);
    }
    return view;
  }

  // A few observations of many columns beside many of few would need memory that no byte of the file stands
  // for.
  void check_room(const View& view, const std::string& where) const {
    const std::uint64_t cells = std::uint64_t{data_.rows} * view.columns();
    if (cells / 4096 > file_.bytes())
      fail(Exit::data,
           "{}: '{}' has {} rows of {} columns among {} observations; {} cells are implausible in {} bytes",
           path(), where, view.rows(), view.columns(), data_.rows, cells, file_.bytes());
  }

  void read_labels() {
    std::vector<std::string> wanted = options_.labels;
    const auto ours = our_list("labels");
    if (wanted.empty() && !ours.empty())
      for (const auto& key : ours) wanted.push_back("obs:" + key);
    std::vector<std::pair<std::size_t, LabelBlock>> blocks;  // modality, its labels
    for (const auto& text : wanted) blocks.push_back(read_block(text, wanted.size() > 1));
    std::size_t count = 0;
    for (const auto& [k, block] : blocks) count += block.names.size();
    if (count == 0) return;
    Matrix<std::int8_t> labels(data_.rows, count);
    std::ranges::fill(labels.values(), kUnknown);
    std::size_t first = 0;
    for (auto& [k, block] : blocks) {
      const auto& rows = modalities_[k].rows;
      for (std::size_t i = 0; i < data_.rows; ++i) {
        const std::int64_t row = rows.empty() ? static_cast<std::int64_t>(i) : rows[i];
        if (row >= 0)
          std::ranges::copy(block.values.row(static_cast<std::size_t>(row)),
                            labels.row(i).subspan(first, block.names.size()).begin());
      }
      first += block.names.size();
      std::ranges::move(block.names, std::back_inserter(data_.label_names));
    }
    if (const auto names = our_list("label_names"); options_.labels.empty() && names.size() == count)
      data_.label_names = names;
    data_.labels = std::move(labels);
  }

  std::pair<std::size_t, LabelBlock> read_block(const std::string& text, bool prefixed) {
    auto [k, rest] = split_modality(text);
    const bool matrix = rest.starts_with("obsm:") || rest.starts_with("obsm/");
    if (matrix || rest.starts_with("obs:") || rest.starts_with("obs/")) {
      rest.erase(0, matrix ? 5 : 4);
    } else {
      k = find_column(rest, text);
    }
    if (k >= modalities_.size())
      fail(Exit::usage, "{}: has no obs of its own; say MODALITY/{}", path(), text);
    const Modality& modality = modalities_[k];
    const std::string at = fmt::format("{}{}/{}", modality.at, matrix ? "obsm" : "obs", rest);
    const std::string where = fmt::format("{}: '{}'", path(), text);
    LabelBlock block;
    if (matrix && !file_.has(at)) {
      const auto there = keys(modality.at + "obsm");
      fail(Exit::usage, "{}: there is no such matrix{}; obsm has {}", where, did_you_mean(rest, there),
           some(there, 20));
    }
    if (matrix && !is_frame(file_, at)) {
      block = labels_of(matrix_at(file_, at), rest, options_.label_code, where);
    } else if (matrix) {
      const Frame frame(file_, at, "");
      std::vector<LabelBlock> columns;
      for (const auto& name : frame.columns())
        columns.push_back(labels_of(frame.column(name), name, true, options_.label_code, where));
      block = side_by_side(std::move(columns), modality.names.size(), where);
    } else {
      block = labels_of(Frame(file_, modality.at + "obs", modality.at + "uns").column(rest), rest, prefixed,
                        options_.label_code, where);
    }
    if (block.values.rows() != modality.names.size())
      fail(Exit::data, "{}: {} rows of labels, but there are {} observations", where, block.values.rows(),
           modality.names.size());
    return {k, std::move(block)};
  }

  static LabelBlock side_by_side(std::vector<LabelBlock>&& blocks, std::size_t rows,
                                 const std::string& where) {
    std::size_t count = 0, first = 0;
    for (const auto& block : blocks) count += block.names.size();
    LabelBlock all{{}, Matrix<std::int8_t>(rows, count)};
    for (auto& block : blocks) {
      if (block.values.rows() != rows)
        fail(Exit::data, "{}: a column has {} rows, expected {}", where, block.values.rows(), rows);
      for (std::size_t i = 0; i < rows; ++i)
        std::ranges::copy(block.values.row(i), all.values.row(i).subspan(first).begin());
      first += block.names.size();
      std::ranges::move(block.names, std::back_inserter(all.names));
    }
    return all;
  }

  Frame obs(std::size_t k) { return {file_, modalities_[k].at + "obs", modalities_[k].at + "uns"}; }
  static std::string column_text(const Modality& modality, const std::string& column) {
    return modality.name.empty() ? "obs:" + column : fmt::format("{}/obs:{}", modality.name, column);
  }

  // A bare name: a column of the file's own obs, or of the only modality that has one; rna:celltype as MuData
  // says it.
  std::size_t find_column(std::string& name, const std::string& text) {
    std::vector<std::size_t> found;
    std::vector<std::string> there, columns;
    if (root_ < modalities_.size() && obs(root_).has(name)) return root_;
    for (std::size_t k = 0; k < modalities_.size(); ++k) {
      const Frame frame = obs(k);
      if (frame.has(name)) found.push_back(k);
      const std::string prefix = modalities_[k].name + ":";
      for (const auto& column : frame.columns()) {
        columns.push_back(column);
        there.push_back(column_text(modalities_[k], column));
      }
      if (name.starts_with(prefix) && frame.has(name.substr(prefix.size()))) {
        name.erase(0, prefix.size());
        return k;
      }
    }
    if (found.size() == 1) return found[0];
    if (found.size() > 1)
      fail(Exit::usage, "{}: {} modalities have a column '{}'; say which: {}/obs:{}", path(), found.size(),
           text, modalities_[found[0]].name, text);
    fail(Exit::usage, "{}: no obs has a column '{}'{}; there are {}", path(), text,
         did_you_mean(text, columns), some(there, 20));
  }

  void note_what_is_left() {
    std::vector<std::string> left;
    for (const auto& modality : modalities_) {
      const std::string prefix = modality.name.empty() ? "" : modality.name + "/";
      if (file_.has(modality.at + "raw") || file_.has(modality.at + "raw.X")) left.push_back(prefix + "raw");
      for (const char* group : {"layers", "obsm"})
        for (const auto& key : keys(modality.at + group)) {
          const std::string at = fmt::format("{}{}/{}", prefix, group, key);
          if ((modality.name.empty() && is_modality(key)) || used(at)) continue;
          left.push_back(at);
        }
    }
    if (!left.empty() && data_.views.empty() && data_.labels.empty())
      fail(Exit::data, "{}: has no X; --views takes other matrices as views, here {}", path(),
           some(left, 12));
    if (!left.empty())
      data_.notes.push_back(fmt::format("ignored: {}; --views can add matrices", some(left, 12)));
    if (!data_.labels.empty() || !options_.labels_declared) return;
    std::vector<std::string> columns;
    for (std::size_t k = 0; k < modalities_.size(); ++k) {
      const Frame frame = obs(k);
      for (const auto& column : frame.columns()) columns.push_back(column_text(modalities_[k], column));
    }
    if (columns.empty()) return;
    data_.notes.push_back(
        fmt::format("no labels were chosen; --labels takes columns, here {}", some(columns, 8)));
  }

  bool used(const std::string& at) const {
    const auto is = [&](const std::string& text) {
      std::string plain = text.substr(text.find('=') + 1);
      std::ranges::replace(plain, ':', '/');
      std::string other = at;
      std::ranges::replace(other, ':', '/');
      return plain == other;
    };
    return std::ranges::any_of(options_.views, is) || std::ranges::any_of(options_.labels, is);
  }

  Hdf5File file_;
  const ReadOptions& options_;
  std::vector<Modality> modalities_;  // and, of .h5mu files, the root
  std::size_t root_ = SIZE_MAX;       // its position
  Dataset data_;
};

}  // namespace

Dataset read_h5ad_dataset(const std::string& path, const ReadOptions& options) {
  return H5adReader(path, options).read();
}

}  // namespace lacuna
