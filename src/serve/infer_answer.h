// The answer to a request of the Open Inference Protocol.
#pragma once

#include "base/matrix.h"
#include "serve/infer_request.h"
#include "serve/message.h"
#include "serve/queue.h"

namespace lacuna::serve {

Reply write_inference(const Inference& inference, const ServedModel& model, const Outcome& outcome);

// Calibrated probabilities, or the scores themselves where the model has no calibration.
Matrix<float> probabilities_of(const ServedModel& model, MatrixView<const float> scores);

}  // namespace lacuna::serve
