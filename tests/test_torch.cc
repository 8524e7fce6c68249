// A whole step against an independent implementation in PyTorch, from the same weights and batch: every loss
// and every gradient. Skipped where python3 has no torch.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "data/npy.h"
#include "network_cases.h"

namespace lacuna {
namespace {

const char* python_with_torch() {
  for (const char* python : {"python3", "/usr/bin/python3"})
    if (std::system(fmt::format("{} -c 'import torch, numpy' >/dev/null 2>&1", python).c_str()) == 0)
      return python;
  return nullptr;
}

// The masked input of a step, by the rule that nn/mtd.cc follows (preset best and paper leave out one start).
std::vector<SharedMatrix<float>> masked_inputs(const Items& items, const MtdOptions& options, const Batch& batch) {
  std::vector<SharedMatrix<float>> masked = items.X;
  const std::size_t unused = options.mask_start == MaskStart::authors ? 2
                             : options.mask_start == MaskStart::paper ? 1
                                                                      : 0;
  for (std::size_t i = 0; i < items.rows(); ++i) {
    Random random(batch.seed, Purpose::fragment, batch.epoch, static_cast<std::uint32_t>(i));
    for (std::size_t v = 0; v < items.views(); ++v) {
      const std::size_t d = items.X[v].cols(),
                        l = static_cast<std::size_t>(options.mask_rate * static_cast<double>(d));
      const std::size_t start = random.below(d - l - unused + 1);
      const std::size_t end = start + l + (options.mask_length == MaskLength::inclusive ? 1 : 0);
      for (std::size_t j = start; j < end; ++j) masked[v](i, j) = 0;
    }
  }
  return masked;
}

struct Case {
  std::string preset;
  Changes changes;
};

TEST(Torch, LossesAndGradientsOfWholeSteps) {
  const char* python = python_with_torch();
  if (python == nullptr) GTEST_SKIP() << "python3 has no torch and numpy (Debian: python3-torch)";
  const Changes quiet = {{"view-dropout", "0"}, {"hidden-dropout", "0"}, {"fused-dropout", "0"}};
  std::vector<Case> cases = {{"authors", {{"alpha", "1"}, {"beta", "1"}}},
                             {"repaired", {{"beta", ".5"}, {"alpha", ".3"}}},
                             {"paper", {}},
                             {"best", quiet},
                             {"best", quiet}};
  cases.back().changes.insert(cases.back().changes.end(),
                              {{"channels", "2"}, {"beta", ".1"}, {"alpha", "1"}});

  const auto folder = std::filesystem::temp_directory_path() / fmt::format("lacuna_torch_{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::string command = fmt::format("{} {}/tests/torch_step.py", python, LACUNA_SOURCE_DIR);
  const Items items = random_items({.rows = 12, .columns = {14, 20, 11, 16}, .labels = 6}, 4);
  const auto rows = all_rows(items);
  const Batch batch{&items, rows, 9, 2, 5};
  std::vector<std::map<std::string, Matrix<double>>> gradients(cases.size());
  std::vector<Losses> losses(cases.size());
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const MtdOptions options = small_options(cases[k].preset, cases[k].changes);
    MtdNetwork<double> network(options, network_shape_of(items), 6, make_reference_ops<double>());
    network.keep({});
    std::map<std::string, Matrix<float>> weights;
    network.visit([&](const std::string& name, ParameterView<double> p, bool) {
      auto& w = weights["w:" + name] = Matrix<float>(p.value.rows, p.value.cols);
      for (std::size_t i = 0; i < w.rows(); ++i)
        for (std::size_t j = 0; j < w.cols(); ++j) w(i, j) = static_cast<float>(p.value(i, j));
    });
    // The options as text, in bytes.
    MtdOptions copy = options;
    Options declared;
    copy.declare(declared);
    const std::string text = declared.json().dump();
    Matrix<std::uint8_t> bytes(1, text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    Matrix<std::uint32_t> views(1, 1);
    views(0, 0) = static_cast<std::uint32_t>(items.views());
    const auto masked = options.mask_rate > 0 ? masked_inputs(items, options, batch) : items.X;
    std::vector<Array> arrays = {borrow("options", std::as_const(bytes)),
                                 borrow("views", std::as_const(views)), borrow("W", items.W),
                                 borrow("Y", items.Y), borrow("G", items.G)};
    for (std::size_t v = 0; v < items.views(); ++v) {
      arrays.push_back(borrow(fmt::format("clean{}", v), items.X[v]));
      arrays.push_back(borrow(fmt::format("masked{}", v), masked[v]));
    }
    for (const auto& [name, w] : weights) arrays.push_back(borrow(name, w));
    const std::string in = (folder / fmt::format("in{}.npz", k)).string();
    write_npz(in, arrays);
    command += fmt::format(" {} {}", in, (folder / fmt::format("out{}.npz", k)).string());

    std::map<std::string, Matrix<double>> before;
    network.visit([&](const std::string& name, ParameterView<double> p, bool) {
      before[name] = Matrix<double>(p.value.rows, p.value.cols);
      before[name].copy_from(p.value);
    });
    losses[k] = network.step(batch, gradient_rule());
    network.visit([&](const std::string& name, ParameterView<double> p, bool) {
      auto& g = gradients[k][name] = before[name];
      for (std::size_t i = 0; i < g.rows(); ++i)
        for (std::size_t j = 0; j < g.cols(); ++j) g(i, j) -= p.value(i, j);
    });
  }
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  for (std::size_t k = 0; k < cases.size(); ++k) {
    SCOPED_TRACE(cases[k].preset);
    const auto arrays = read_npz((folder / fmt::format("out{}.npz", k)).string());
    const auto value = [&](const std::string& name, std::size_t at) {
      const Array* array = find_array(arrays, name);
      if (array == nullptr) throw std::runtime_error("torch gave no " + name);
      double x = 0;
      std::memcpy(&x, array->bytes.data() + at * sizeof(double), sizeof(double));
      return x;
    };
    for (const auto& loss : losses[k])
      EXPECT_NEAR(loss.value, value(std::string("loss:") + loss.name, 0), 1e-9 * (1 + std::abs(loss.value)))
          << loss.name;
    for (const auto& [name, g] : gradients[k]) {
      const Array* array = find_array(arrays, "g:" + name);
      ASSERT_NE(array, nullptr) << name;
      // An array that NumPy stores by columns keeps that order in its bytes.
      for (std::size_t i = 0; i < g.rows(); ++i)
        for (std::size_t j = 0; j < g.cols(); ++j)
          ASSERT_NEAR(g(i, j), value("g:" + name, array->column_major ? j * g.rows() + i : i * g.cols() + j),
                      1e-9)
              << name << " (" << i << ", " << j << ")";
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lacuna
