#include "data/prepared.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/disk.h"
#include "base/error.h"
#include "base/files.h"
#include "base/leftovers.h"
#include "base/mapping.h"
#include "base/text.h"
#include "data/growing_array.h"
#include "data/release.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr const char *kPreparedSchema = "lacuna.prepared.1", *kKeyFile = "key.json",
                     *kPreparationFile = "preparation.safetensors", *kPrefix = "prepare.";
constexpr std::size_t kGroup = 64;   // rows that apply() gives to a thread
constexpr std::size_t kSlab = 1024;  // rows; a multiple of what apply() gives to a thread
constexpr std::uint64_t kViewBytes = std::uint64_t{64} << 20;  // a view that is larger is fitted in passes

std::string array_path(const std::string& folder, const std::string& part, const std::string& array) {
  return fmt::format("{}/{}.{}.npy", folder, part, array);
}

// A folder that is gone with this object unless it has become another one.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& beside) : path_(fmt::format("{}.tmp-{}-0", beside, getpid())) {
    make_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  void become(const std::string& path) const {
    std::error_code error;
    fs::rename(path_, path, error);
    if (error && !fs::exists(path))  // another process may have been faster: it has the same rows
      fail(Exit::failed, "{}: cannot be made: {}", path, error.message());
  }

 private:
  std::string path_;
};

// What the fit and the rows depend on, of one selection.
std::string hash_of(const Selection& selection) {
  Sha256 hash;
  hash.add(std::as_bytes(std::span(selection.rows)));
  const Fold* const fold = selection.fold;
  for (const std::uint32_t row : selection.rows) {
    if (fold == nullptr) break;
    hash.add(std::as_bytes(fold->W.row(row)));
    if (selection.hide_labels) hash.add(std::as_bytes(fold->G.row(row)));
  }
  if (selection.unlabelled != nullptr) hash.add(std::as_bytes(std::span(*selection.unlabelled)));
  return hash.hex();
}

bool in_files(const View& view) {
  const auto* const table = std::get_if<Table<float>>(&view.features);
  if (table == nullptr || table->empty()) return false;
  const MatrixView<const float> all = table->view();
  return is_mapped(std::as_bytes(std::span(all.data, (all.rows - 1) * all.stride + all.cols)));
}

// Views whose rows can be prepared while they are read.
std::vector<bool> mapped_views(const Selection& train, const Selection& val) {
  std::vector<bool> mapped;
  for (std::size_t v = 0; v < train.data->views.size(); ++v)
    mapped.push_back(in_files(train.data->views[v]) && !val.data->views[v].sparse());
  return mapped;
}

// Those of them of which a copy would be as large as they are: they stay in the files of the data.
std::vector<bool> raw_views(const Preparation& preparation, std::vector<bool> mapped) {
  for (std::size_t v = 0; v < mapped.size(); ++v)
    mapped[v] = mapped[v] && preparation.views()[v].keeps_columns();
  return mapped;
}

std::uint64_t bytes_of(const Preparation& preparation, const std::vector<bool>& raw, std::size_t rows,
                       std::size_t labels) {
  std::uint64_t row = preparation.views().size() + labels * (sizeof(float) + 1);
  for (std::size_t v = 0; v < raw.size(); ++v)
    if (!raw[v]) row += preparation.views()[v].width() * sizeof(float);
  return row * rows;
}

// The arrays of a selection, slab after slab; none of raw views.
void write_rows(const Preparation& preparation, const std::vector<bool>& raw, const Selection& all,
                const std::string& folder, const std::string& part, Checksums& sums) {
  std::vector<std::unique_ptr<GrowingArray>> arrays;
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, Element type, std::size_t cols) {
    names.push_back(name);
    arrays.push_back(std::make_unique<GrowingArray>(array_path(folder, part, name), type, cols));
  };
  std::vector<bool> written = raw;
  written.flip();
  for (std::size_t v = 0; v < raw.size(); ++v)
    if (written[v]) add(fmt::format("x{}", v), Element::f32, preparation.views()[v].width());
  add("w", Element::u8, preparation.views().size());
  add("y", Element::f32, all.data->label_count());
  add("g", Element::u8, all.data->label_count());
  Selection slab{all.data, all.fold, {}, all.hide_labels, all.unlabelled};
  for (std::size_t begin = 0, count = 0; begin < all.rows.size(); begin += count) {
    // Few rows where they lie far apart: what is between them comes into memory too.
    count = std::min(kSlab, all.rows.size() - begin);
    while (count > kGroup && all.rows[begin + count - 1] - all.rows[begin] >= 2 * kSlab)
      count = std::max(kGroup, count / 2 / kGroup * kGroup);
    const auto first = all.rows.begin() + static_cast<std::ptrdiff_t>(begin);
    slab.rows.assign(first, first + static_cast<std::ptrdiff_t>(count));
    const Items items = preparation.apply(slab, true, written);
    std::size_t at = 0;
    for (std::size_t v = 0; v < raw.size(); ++v)
      if (written[v]) arrays[at++]->add(items.X[v].values());
    arrays[at++]->add(items.W.values());
    arrays[at++]->add(items.Y.values());
    arrays[at++]->add(items.G.values());
    const auto [low, high] = std::ranges::minmax(slab.rows);
    for (const View& view : all.data->views) release_rows(view, low, high - low + 1);
  }
  for (std::size_t k = 0; k < arrays.size(); ++k)
    sums.files[fs::path(array_path(folder, part, names[k])).filename().string()] = arrays[k]->finish();
}

template <class T>
SharedMatrix<T> open_array(const std::string& path, Element type, std::size_t rows, std::size_t cols) {
  const Array array = read_npy(path);
  if (array.type != type || array.column_major || array.shape.size() != 2 || array.rows() != rows ||
      array.cols() != cols)
    fail(Exit::data, "{}: is {} {}, expected {} {} x {}; remove the folder; it will be made again", path,
         element_name(array.type), shape_text(array.shape), element_name(type), rows, cols);
  return {array.owner, {reinterpret_cast<const T*>(array.bytes.data()), rows, cols}};
}

RawRows raw_rows(const Preparation::ViewMap& map, const View& view,
                 std::shared_ptr<const std::vector<std::uint32_t>> where, const std::string& folder) {
  if (map.columns != view.columns())
    fail(Exit::data,
         "{}: prepares {} columns of view '{}', which has {}; remove the folder; it will be made again", folder,
         map.columns, view.name, view.columns());
  return {std::get<Table<float>>(view.features), std::move(where), map.shift, map.scale, map.clamp};
}

Items open_rows(const Preparation& preparation, const std::vector<bool>& raw, const Selection& selection,
                const std::string& folder, const std::string& part) {
  Items items;
  items.mapped = true;
  const std::size_t m = preparation.views().size(), rows = selection.rows.size(),
                    labels = selection.data->label_count();
  const auto path = [&](const std::string& array) { return array_path(folder, part, array); };
  const auto where = std::make_shared<const std::vector<std::uint32_t>>(selection.rows);
  for (std::size_t v = 0; v < m; ++v) {
    const Preparation::ViewMap& map = preparation.views()[v];
    if (raw[v]) {
      items.raw.push_back(raw_rows(map, selection.data->views[v], where, folder));
      items.X.push_back(elsewhere(rows, map.columns));
      continue;
    }
    items.raw.emplace_back();
    items.X.push_back(open_array<float>(path(fmt::format("x{}", v)), Element::f32, rows, map.width()));
  }
  items.W = open_array<std::uint8_t>(path("w"), Element::u8, rows, m);
  items.Y = open_array<float>(path("y"), Element::f32, rows, labels);
  items.G = open_array<std::uint8_t>(path("g"), Element::u8, rows, labels);
  preparation.find_backgrounds(items);
  return items;
}

// Throws unless the folder is what its key says and every block is as it was written.
void check_found(const std::string& folder, const nlohmann::json& key) {
  const auto found = nlohmann::json::parse(read_text(folder + "/" + kKeyFile), nullptr, false);
  if (!(found == key))  // what is no JSON is equal to nothing, and different from nothing
    fail(Exit::data,
         "{}: its {} describes other rows than those it is named after; remove the folder; it will be made again", folder,
         kKeyFile);
  const FolderCheck check = check_folder(folder);
  if (!check.damaged.empty())
    fail(Exit::data, "{}; remove the folder {}; it will be made again", check.damaged.front(), folder);
}

}  // namespace

nlohmann::json PreparedStore::key_of(const Selection& train, const Selection& val,
                                     const PrepareOptions& options, const std::vector<bool>& mapped) const {
  PrepareOptions copy = options;
  Options settings;
  copy.declare(settings);
  return {{"schema", kPreparedSchema}, {"version", LACUNA_VERSION},
          {"data", data_hash_},        {"train", hash_of(train)},
          {"val", hash_of(val)},       {"settings", settings.json()},
          {"seed", options.seed},      {"rows", {train.rows.size(), val.rows.size()}},
          {"mapped", mapped}};  // decides which views are written
}

PreparedRows PreparedStore::get(const Selection& train, const Selection& val, const PrepareOptions& options,
                                bool in_batches, FunctionRef<void(const std::string&)> tell) {
  const std::vector<bool> mapped =
      in_batches ? mapped_views(train, val) : std::vector<bool>(train.data->views.size());
  const nlohmann::json key = key_of(train, val, options, mapped);
  Sha256 hash;
  hash.add(key.dump());
  const std::string folder = root_ + "/" + hash.hex().substr(0, 16);
  const std::size_t labels = train.data->label_count();
  if (!fs::exists(folder)) {
    PrepareOptions bounded = options;
    bounded.most_bytes = kViewBytes;
    const Preparation preparation = Preparation::fit(train, bounded);
    const std::vector<bool> raw = raw_views(preparation, mapped);
    const std::uint64_t needed = bytes_of(preparation, raw, train.rows.size() + val.rows.size(), labels);
    make_directories(root_);
    const std::uint64_t left = free_bytes(root_ + "/");
    if (left < needed)
      fail(Exit::failed,
           "{}: the prepared rows need {}, the disk has {} left; name another place with --prepared", root_,
           bytes_text(static_cast<double>(needed)), bytes_text(static_cast<double>(left)));
    const auto unwritten = std::ranges::count(raw, true);
    tell(fmt::format("{} of prepared rows go to {}{}", bytes_text(static_cast<double>(needed)), folder,
                     unwritten == 0 ? ""
                                    : fmt::format("; rows of {} of {} views are prepared while they are read",
                                                  unwritten, raw.size())));
    remove_leftovers(folder);
    const TemporaryFolder temporary(folder);
    Checksums sums;
    write_rows(preparation, raw, train, temporary.path(), "train", sums);
    write_rows(preparation, raw, val, temporary.path(), "val", sums);
    Tensors fitted;
    preparation.save(fitted, kPrefix);
    fitted.write(temporary.path() + "/" + kPreparationFile);
    write_text(temporary.path() + "/" + kKeyFile, key.dump(1) + "\n");
    write_text(temporary.path() + "/" + kChecksumsFile, sums.text());
    temporary.become(folder);
  } else {
    check_found(folder, key);
    tell(fmt::format("prepared rows are taken from {}", folder));
  }
  used_.push_back(folder);
  PreparedRows rows{Preparation::load(Tensors::read(folder + "/" + kPreparationFile), kPrefix), {}, {}};
  if (rows.preparation.views().size() != train.data->views.size())
    fail(Exit::data, "{}: prepares {} views, the data have {}; remove the folder; it will be made again", folder,
         rows.preparation.views().size(), train.data->views.size());
  const std::vector<bool> raw = raw_views(rows.preparation, mapped);
  rows.train = open_rows(rows.preparation, raw, train, folder, "train");
  rows.val = open_rows(rows.preparation, raw, val, folder, "val");
  return rows;
}

void PreparedStore::remove() {
  std::error_code ignored;
  for (const auto& folder : used_) fs::remove_all(folder, ignored);
  used_.clear();
  fs::remove(root_, ignored);  // if it is empty
}

}  // namespace lacuna
