// Gaps and splits of repeated experiments, as the paper builds them: for each repetition a view mask W, a
// label mask G (both in the data's row order) and an order of the rows; the first `train` rows of the order
// are for training, the next `val` for validation, the rest for the test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "base/options.h"
#include "data/dataset.h"

namespace lacuna {

enum class Part { train, val, test, all };
Part part_from_name(const std::string& name);  // Exit::usage, with the nearest name
const char* part_name(Part part);

struct Fold {
  Matrix<std::uint8_t> W;            // (n, m) 1 = view present
  Matrix<std::uint8_t> G;            // (n, c) 1 = label known in training
  std::vector<std::uint32_t> order;  // a permutation of 0..n-1
};

struct Folds {
  std::size_t rows = 0, views = 0, labels = 0;
  double train_share = .7, val_share = .15;
  std::vector<Fold> folds;
  std::vector<std::string>
      ids;  // of the rows; empty if the data had none, or if the file is too old to contain them

  std::size_t train_rows() const;  // ceil(train_share * n)
  std::size_t val_rows() const;    // ceil(val_share * n), at most what is left
  std::vector<std::uint32_t> part_rows(std::size_t fold, Part part) const;
  std::string hash() const;
};

struct MaskOptions {
  double missing_views = .5, missing_labels = .5, train = .7, val = .15;
  std::int64_t repeats = 10;
  std::uint64_t seed = 1;
  bool stratify = false;  // splits by iterative stratification (data/stratify.h); otherwise at random
  std::string test_views =
      "gaps";  // gaps: as the training rows; complete: rows for validation and test keep all views
  std::string scope =
      "all";  // all: exact rates over all rows (the authors' way); part: exact inside each part
  std::string mechanism = "mcar";     // how instances become missing (data/mechanism.h): mcar, mnar, pattern
  double strength = 2;                // of mnar
  std::vector<std::string> patterns;  // "VIEW+VIEW=SHARE"
  void declare(Options& options);
};

Folds make_folds(const Dataset& data, const MaskOptions& options);
Folds read_folds(const std::string& path);  // .npz of ours or the authors' .mat
void write_folds(const Folds& folds, const std::string& path);
// Exit::mismatch, with both numbers, if the folds were not made for data of this shape or for these rows. Rows are
// matched by id, and masks and orders are brought into the data's order. If one side has no ids, rows are taken in
// order. Returns a note for stderr; empty if both sides agree.
std::vector<std::string> check_fit(Folds& folds, const Dataset& data, const std::string& folds_path);

}  // namespace lacuna
