#include "methods/adapt.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "methods/member_fit.h"

namespace lacuna {

Matrix<float> present_mean(MatrixView<const float> X, MatrixView<const std::uint8_t> W, std::size_t v) {
  Matrix<float> mean(1, X.cols);
  std::vector<double> sum(X.cols), squares(X.cols);
  double count = 0;
  for (std::size_t i = 0; i < X.rows; ++i) {
    if (!W(i, v)) continue;
    ++count;
    for (std::size_t j = 0; j < X.cols; ++j) {
      const double x = static_cast<double>(X(i, j));
      sum[j] += x;
      squares[j] += x * x;
    }
  }
  for (std::size_t j = 0; j < X.cols && count > 0; ++j) {
    const double m = sum[j] / count;
    // Centred columns leave 1e-8 or so; methods that scale rows to length 1 must see a zero there.
    mean(0, j) = m * m > 1e-10 * squares[j] / count ? static_cast<float>(m) : 0.f;
  }
  return mean;
}

Items labelled_rows(const Items& items) {
  std::vector<std::uint32_t> rows;
  for (std::size_t i = 0; i < items.rows(); ++i)
    if (std::ranges::any_of(items.G.row(i), [](std::uint8_t known) { return known != 0; }))
      rows.push_back(static_cast<std::uint32_t>(i));
  if (rows.empty() || rows.size() == items.rows()) return items;
  return member_rows(items, 0, {}, rows);
}

namespace {

void fill_view(MatrixView<const float> X, MatrixView<const std::uint8_t> W, std::size_t v,
               const Matrix<float>& mean, MatrixView<float> out) {
  for (std::size_t i = 0; i < X.rows; ++i) {
    const auto from = W(i, v) ? X.row(i) : mean.row(0);
    std::copy(from.begin(), from.end(), out.row(i).begin());
  }
}

class FillMissing final : public Method {
 public:
  explicit FillMissing(std::unique_ptr<Method> inner) : inner_(std::move(inner)) {}

  Traits traits() const override {
    Traits traits = inner_->traits();
    traits.missing_views = traits.missing_labels = false;
    return traits;
  }
  void declare(Options& options) override { inner_->declare(options); }
  std::vector<Variant> variants() const override { return inner_->variants(); }
  Cost cost(const FitSize& size) const override {
    FitSize filled = size;
    filled.present.assign(size.columns.size(), size.rows);
    Cost cost = inner_->cost(filled);
    for (const std::size_t columns : size.columns)
      cost.bytes += 4. * static_cast<double>(size.rows) * static_cast<double>(columns);
    return cost;
  }

  void fit(const Items& all, const Items& val, FitContext& context) override {
    const Items train = labelled_rows(all);  // others would teach that they have no label
    means_.clear();
    for (std::size_t v = 0; v < train.views(); ++v) means_.push_back(present_mean(train.X[v], train.W, v));
    Items filled = fill(train);
    filled.Y = train.Y;
    filled.G = Matrix<std::uint8_t>(train.rows(), train.labels());
    for (std::size_t i = 0; i < train.G.values().size(); ++i) {
      if (!train.G.values()[i]) filled.Y.values()[i] = 0;
      filled.G.values()[i] = 1;
    }
    Items filled_val = fill(val);
    filled_val.Y = val.Y;
    filled_val.G = val.G;
    inner_->fit(filled, filled_val, context);
  }
  nlohmann::json selected() const override { return inner_->selected(); }
  void predict(const Items& items, MatrixView<float> scores) const override {
    inner_->predict(fill(items), scores);
  }
  void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const override {
    inner_->decide(scores, decided);
  }
  void save(Tensors& file) const override {
    inner_->save(file);
    for (std::size_t v = 0; v < means_.size(); ++v)
      file.put("fill.mean" + std::to_string(v), means_[v].view());
  }
  void load(const Tensors& file, const ItemShape& shape) override {
    inner_->load(file, shape);
    means_.clear();
    for (const std::size_t columns : shape.columns) {
      Matrix<float> mean(1, columns);
      file.get("fill.mean" + std::to_string(means_.size()), mean.view());
      means_.push_back(std::move(mean));
    }
  }
  std::uint64_t parameters() const override { return inner_->parameters(); }

 private:
  Items fill(const Items& items) const {
    Items out;
    out.W = Matrix<std::uint8_t>(items.rows(), items.views());
    for (std::uint8_t& w : out.W.values()) w = 1;
    for (std::size_t v = 0; v < items.X.size(); ++v) {
      Matrix<float> X(items.X[v].rows(), items.X[v].cols());
      fill_view(items.X[v], items.W, v, means_[v], X);
      out.X.push_back(std::move(X));
    }
    return out;
  }

  std::unique_ptr<Method> inner_;
  std::vector<Matrix<float>> means_;  // per view (1, d_v)
};

class PerView final : public Method {
 public:
  explicit PerView(std::function<std::unique_ptr<Method>()> make)
      : make_(std::move(make)), settings_(make_()) {}

  Traits traits() const override {
    Traits traits = settings_->traits();
    traits.multi_view = traits.missing_views = false;
    return traits;
  }
  void declare(Options& options) override {
    options.add("view", view_, "the view to use, counted from 0; -1: the best on validation")
        .range(-1, 65535);
    settings_->declare(options);
  }
  std::vector<Variant> variants() const override { return settings_->variants(); }
  Cost cost(const FitSize& size) const override {
    Cost sum;
    for (std::size_t v = 0; v < size.columns.size(); ++v) {
      if (view_ >= 0 && static_cast<std::size_t>(view_) != v) continue;
      const double share =
          static_cast<double>(size.present[v]) / static_cast<double>(std::max<std::size_t>(size.rows, 1));
      const Cost one = settings_->cost({.rows = size.present[v],
                                        .labels = size.labels,
                                        .columns = {size.columns[v]},
                                        .present = {size.present[v]},
                                        .positives = size.positives * share});
      sum.core_seconds += one.core_seconds;
      sum.bytes = std::max(sum.bytes, one.bytes);
    }
    return sum;
  }

  void fit(const Items& train, const Items& val, FitContext& context) override {
    if (view_ >= static_cast<std::int64_t>(train.views()))
      fail(Exit::usage, "view {} was requested, the data have the views 0 to {}", view_, train.views() - 1);
    best_.reset();
    const nlohmann::json* earlier = context.follows();
    only_ = earlier == nullptr ? view_ : earlier->at("view").get<std::int64_t>();
    std::size_t first = 0;
    const Tensors* resumed = context.resume_from();
    if (resumed != nullptr) first = resume(*resumed, train);
    for (std::size_t v = first; v < train.views(); ++v) {
      if (only_ >= 0 && static_cast<std::size_t>(only_) != v) continue;
      const Matrix<float> mean = present_mean(train.X[v], train.W, v);
      const Items observed = rows_with_view(train, v);
      if (observed.rows() == 0) continue;
      const Items selection = val.rows() > 0 ? with_labels(one_view(val, v, mean), val) : Items{};
      ViewContext inner_context(*this, context, v, train.views());
      inner_context.first = earlier == nullptr ? nullptr : &earlier->at("of");
      std::optional<Tensors> state;
      if (resumed != nullptr && v == first) {
        state = resumed->part("current.");
        state->metadata = resumed->metadata.at("current");
        inner_context.state = &*state;
      }
      auto model = fresh();
      model->fit(observed, selection, inner_context);
      const double ap = evaluate_on(*model, selection.rows() > 0 ? selection : observed).ap;
      if (!best_ || ap > best_ap_) {
        selected_ = model->selected();
        best_ = std::move(model);
        best_ap_ = ap;
        best_view_ = v;
        mean_ = mean;
      }
      if (inner_context.stopped || context.stopping()) break;
    }
    if (!best_) fail(Exit::data, "no view of the training rows has an instance");
  }
  nlohmann::json selected() const override { return {{"view", best_view_}, {"of", selected_}}; }

  void predict(const Items& items, MatrixView<float> scores) const override {
    best_->predict(one_view(items, best_view_, mean_), scores);
  }
  void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const override {
    best_->decide(scores, decided);
  }
  void save(Tensors& file) const override {
    best_->save(file);
    file.put("view.mean", mean_.view());
    file.metadata["view"] = best_view_;
  }
  void load(const Tensors& file, const ItemShape& shape) override {
    best_view_ = file.metadata.value("view", shape.columns.size());
    if (best_view_ >= shape.columns.size())
      fail(Exit::data, "{}: was fitted on view {}, the model has {} views", file.path(), best_view_,
           shape.columns.size());
    best_ = fresh();
    best_->load(file, {{shape.columns[best_view_]}, shape.labels});
    mean_ = Matrix<float>(1, shape.columns[best_view_]);
    file.get("view.mean", mean_.view());
  }
  std::uint64_t parameters() const override { return best_ ? best_->parameters() : 0; }

 private:
  // Passes the inner fit's reports on; a snapshot is the state of the running view and the best model before
  // it.
  struct ViewContext final : FitContext {
    ViewContext(const PerView& owner_, FitContext& outer_, std::size_t view, std::size_t views)
        : owner(owner_), outer(outer_), v(view), m(views) {
      seed = outer.seed;
    }
    bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) override {
      EpochRecord mine = record;
      if (owner.only_ < 0) {  // otherwise there is one to try
        mine.view = static_cast<std::int64_t>(v);
        mine.views = static_cast<std::int64_t>(m);
      }
      const bool go_on = outer.after_epoch(mine, [&](Tensors& file) {
        Tensors current, best;
        snapshot(current);
        file.put_all("current.", current);
        file.metadata["current"] = current.metadata;
        file.metadata["view"] = v;
        file.metadata["method"] = owner.settings_->traits().name;
        if (owner.best_) {
          owner.save(best);
          file.put_all("best.", best);
          file.metadata["best"] = best.metadata;
          file.metadata["best_ap"] = owner.best_ap_;
          file.metadata["best_selected"] = owner.selected_;
        }
      });
      stopped = stopped || !go_on;
      return go_on;
    }
    bool stopping() override { return outer.stopping(); }
    const Tensors* resume_from() override { return state; }
    const nlohmann::json* follows() const override { return first; }
    void remark(const std::string& text) override { outer.remark(text); }
    const PerView& owner;
    FitContext& outer;
    std::size_t v, m;
    const Tensors* state = nullptr;
    const nlohmann::json* first = nullptr;
    bool stopped = false;  // by the surroundings: no further view is begun
  };

  // The best model so far back in place; returns the view that was running.
  std::size_t resume(const Tensors& file, const Items& train) {
    const std::size_t view = file.metadata.value("view", train.views());
    if (view >= train.views() || !file.metadata.contains("current"))
      fail(Exit::mismatch, "{}: is not a state of {} on {} views", file.path(), settings_->traits().name,
           train.views());
    if (file.metadata.contains("best")) {
      Tensors best = file.part("best.");
      best.metadata = file.metadata["best"];
      ItemShape shape{{}, train.labels()};
      for (const auto& X : train.X) shape.columns.push_back(X.cols());
      load(best, shape);
      best_ap_ = file.metadata.value("best_ap", 0.0);
      selected_ = file.metadata.value("best_selected", nlohmann::json());
    }
    return view;
  }

  // A new inner method with the settings of the declared one.
  std::unique_ptr<Method> fresh() const {
    auto model = make_();
    Options from, to;
    settings_->declare(from);
    model->declare(to);
    to.from_json(from.json(), settings_->traits().name);
    return model;
  }

  static Items rows_with_view(const Items& items, std::size_t v) {
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < items.rows(); ++i)
      if (items.W(i, v)) rows.push_back(i);
    Items out;
    Matrix<float> X(rows.size(), items.X[v].cols());
    out.W = Matrix<std::uint8_t>(rows.size(), 1);
    out.Y = Matrix<float>(rows.size(), items.labels());
    out.G = Matrix<std::uint8_t>(rows.size(), items.labels());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      out.W(r, 0) = 1;
      std::copy(items.X[v].row(rows[r]).begin(), items.X[v].row(rows[r]).end(), X.row(r).begin());
      std::copy(items.Y.row(rows[r]).begin(), items.Y.row(rows[r]).end(), out.Y.row(r).begin());
      std::copy(items.G.row(rows[r]).begin(), items.G.row(rows[r]).end(), out.G.row(r).begin());
    }
    out.X.push_back(std::move(X));
    return out;
  }

  static Items one_view(const Items& items, std::size_t v, const Matrix<float>& mean) {
    Items out;
    out.W = Matrix<std::uint8_t>(items.rows(), 1);
    for (std::uint8_t& w : out.W.values()) w = 1;
    Matrix<float> X(items.rows(), items.X[v].cols());
    fill_view(items.X[v], items.W, v, mean, X);
    out.X.push_back(std::move(X));
    return out;
  }
  static Items with_labels(Items features, const Items& labels) {
    features.Y = labels.Y;
    features.G = labels.G;
    return features;
  }

  std::function<std::unique_ptr<Method>()> make_;
  std::unique_ptr<Method> settings_, best_;
  std::int64_t view_ = -1;
  std::int64_t only_ = -1;  // the one view to fit, or -1
  double best_ap_ = 0;
  nlohmann::json selected_;  // by the best one
  std::size_t best_view_ = 0;
  Matrix<float> mean_;  // (1, d) of the best view
};

}  // namespace

std::unique_ptr<Method> fill_missing(std::unique_ptr<Method> inner) {
  return std::make_unique<FillMissing>(std::move(inner));
}
std::unique_ptr<Method> per_view(std::function<std::unique_ptr<Method>()> make) {
  return std::make_unique<PerView>(std::move(make));
}

}  // namespace lacuna
