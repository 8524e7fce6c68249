// Builds data in memory, trains the floor method, saves, loads, predicts and evaluates, all through the installed
// headers.
#include <lacuna/data/metrics.h>
#include <lacuna/data/simulate.h>
#include <lacuna/methods/model.h>

#include <cstdio>

int main() {
  const lacuna::Dataset data = lacuna::simulate({.rows = 200}).data;
  lacuna::Model model("prior");
  model.fit(lacuna::select_all(data));
  model.save("elsewhere.safetensors");
  const auto scores = lacuna::Model::load("elsewhere.safetensors").predict(data);
  const lacuna::Metrics metrics = lacuna::evaluate(scores, data.labels);
  std::printf("AP %.4f\n", metrics.ap);
  return metrics.ap > .1 && metrics.ap < .9 ? 0 : 1;
}
