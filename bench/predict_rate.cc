// Rows a second of Model::predict from memory, in blocks of 256, with all threads, in f32: what a server could
// give at most.
// usage: predict_rate MODEL DATA [SECONDS]
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/tensors.h"
#include "data/readers.h"
#include "methods/model.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  lacuna::Tensors file = lacuna::Tensors::read(argv[1]);
  file.metadata["options"]["precision"] = "f32";  // as bench/serve.sh has the server compute
  const lacuna::Model model = lacuna::Model::load(file);
  const lacuna::Dataset data = lacuna::read_dataset(argv[2]);
  const double seconds = argc > 3 ? std::atof(argv[3]) : 3;
  lacuna::Selection all = lacuna::select_all(data), block = all;
  constexpr std::size_t kRows = 256;
  const auto begun = std::chrono::steady_clock::now();
  std::size_t rows = 0;
  double took = 0;
  for (std::size_t at = 0; took < seconds; at = (at + kRows) % (data.rows - kRows)) {
    block.rows.assign(all.rows.begin() + static_cast<std::ptrdiff_t>(at),
                      all.rows.begin() + static_cast<std::ptrdiff_t>(at + kRows));
    model.predict(block);
    rows += kRows;
    took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  }
  std::printf("%.0f\n", static_cast<double>(rows) / took);
}
