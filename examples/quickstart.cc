// Learns from a data set with gaps and tags new items with it.
#include <lacuna/data/readers.h>
#include <lacuna/methods/model.h>

#include <cstdio>

int main() {
  const auto data = lacuna::read_dataset("photos.npz");  // views with gaps, labels known in part
  lacuna::Model model;                                   // or the name of any method that `lacuna methods` lists
  model.options().set("epochs", "20", "quickstart");     // every setting by its name
  model.fit(lacuna::select_all(data));                   // 15 % of the rows are held out for selection
  model.save("photos.safetensors");

  const auto trained = lacuna::Model::load("photos.safetensors");
  const auto scores = trained.predict(lacuna::read_dataset("new.npz"));  // (items, labels); views may be missing
  const auto tagged = trained.decide(scores);                            // by thresholds of the held-out rows
  for (std::size_t j = 0; j < tagged.cols(); ++j)
    if (tagged(0, j)) std::printf("%s %.2f\n", trained.label_names()[j].c_str(), double{scores(0, j)});
}
