#include "methods/method.h"

#include "base/error.h"
#include "base/text.h"
#include "methods/all.h"

namespace lacuna {

void Method::decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const {
  for (std::size_t i = 0; i < scores.rows; ++i)
    for (std::size_t j = 0; j < scores.cols; ++j) decided(i, j) = scores(i, j) > .5f;
}

void Method::set_preset(const std::string& name, PrepareOptions&) {
  fail(Exit::usage, "method {} has no presets, so not '{}'", traits().name, name);
}

const std::vector<std::string>& method_names() {
  static const std::vector<std::string> names = {"mtd", "dicnet", "prior", "naim3l"};
  return names;
}

std::unique_ptr<Method> make_method(const std::string& name) {
  if (name == "mtd") return make_mtd();
  if (name == "dicnet") return make_dicnet();
  if (name == "prior") return make_prior();
  if (name == "naim3l") return make_naim3l();
  fail(Exit::usage, "there is no method '{}'{} (lacuna methods lists them)", name,
       did_you_mean(name, method_names()));
}

Metrics evaluate_on(const Method& method, const Items& items) {
  Matrix<float> scores(items.rows(), items.labels());
  method.predict(items, scores);
  Matrix<std::uint8_t> decided(items.rows(), items.labels());
  method.decide(scores, decided);
  return evaluate(scores, truth_of(items), decided);
}

}  // namespace lacuna
