// lacuna export: model -> ONNX.
#include <cstdio>

#include "base/error.h"
#include "base/files.h"
#include "cli/counted.h"
#include "cli/verbs.h"
#include "export/onnx.h"

namespace lacuna::cli {

int export_model(const Arguments& arguments) {
  std::string model, out;
  Options options;
  options.add("model", model, "a model file written by lacuna train")
      .positional()
      .metavar("MODEL")
      .required();
  options.add("out", out, "the ONNX file to write").positional().metavar("OUT.onnx").required();
  parse_or_help(
      options, arguments, "export",
      "Writes a trained network as an ONNX file (opset 17), including the preparation of the views. Inputs "
      "are the views by name; a row of NaN is a missing view. Outputs are scores, probabilities, decided.",
      "  lacuna export photos.safetensors photos.onnx\n");
  if (!out.ends_with(".onnx"))
    fail(Exit::usage, "{}: export writes ONNX; give a name that ends in .onnx", out);
  check_writable(out);
  const OnnxSummary summary = export_onnx(Tensors::read(model), out);
  fmt::print(stderr, "{}: {}, {}, {}\n", out, counted(summary.views, "view"),
             counted(summary.labels, "label"), counted(summary.networks, "network"));
  if (!summary.calibrated)
    fmt::print(
        stderr,
        "note: the model has no calibration ({}): probabilities are the scores, decided is above 0.5\n",
        Calibration::kWhyEmpty);
  return 0;
}

}  // namespace lacuna::cli
