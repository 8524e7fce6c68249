#include "serve/openapi.h"

#include <nlohmann/json.hpp>

#ifndef LACUNA_VERSION
#define LACUNA_VERSION "unknown"
#endif

namespace lacuna::serve {
namespace {

using Json = nlohmann::ordered_json;

Json reference(const char* name) {
  return {{"$ref", std::string("#/components/schemas/") + name}};
}
Json answer(const char* about, const char* type, const Json& schema) {
  return {{"description", about}, {"content", {{type, {{"schema", schema}}}}}};
}
Json refusal(const char* about) {
  return answer(about, "application/problem+json", reference("Problem"));
}

// An operation with its answers; all may be refused in the same ways.
Json operation(const char* about, const Json& good, Json more = Json::object()) {
  Json result = {{"summary", about},
                 {"responses",
                  {{"200", good},
                   {"401", refusal("A token is required.")},
                   {"404", refusal("Not there.")},
                   {"405", refusal("Another HTTP method is required; the detail names it.")},
                   {"421", refusal("The Host header is not a name of this server.")},
                   {"431", refusal("The headers are too long.")}}}};
  for (const auto& [key, value] : more.items()) result[key] = value;
  return result;
}
Json prediction(const char* about, const Json& good, const Json& body, const Json& parameters) {
  Json result = operation(about, good, {{"parameters", parameters}, {"requestBody", body}});
  result["responses"]["400"] =
      refusal("The request does not fit the model; the detail names the view and both sizes.");
  result["responses"]["408"] = refusal("The request was too slow.");
  result["responses"]["413"] = refusal("Too many bytes or rows; send the request in parts.");
  result["responses"]["415"] = refusal("The body is compressed or encoded in a way that is not read.");
  result["responses"]["503"] = refusal("The queue is full; Retry-After says when to try again.");
  return result;
}

Json text(const char* about) {
  return {{"type", "string"}, {"description", about}};
}

// What operations take: parameters and bodies.
Json model_name() {
  return {{"name", "model"}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}};
}

Json suggest_parameters() {
  return Json::array(
      {{{"name", "model"},
        {"in", "query"},
        {"schema", text("The model; may be omitted if there is only one.")}},
       {{"name", "top"}, {"in", "query"}, {"schema", {{"type", "integer"}, {"minimum", 0}, {"default", 5}}}},
       {{"name", "explain"}, {"in", "query"}, {"schema", {{"type", "boolean"}, {"default", false}}}}});
}

Json request_body(const Json& content) {
  return {{"required", true}, {"content", content}};
}

Json json_lines() {
  return {{"type", "string"}, {"description", "One item or answer per line."}};
}

Json infer_content() {
  return {{"application/json", {{"schema", reference("InferRequest")}}},
          {"application/octet-stream",
           {{"schema",
             {{"type", "string"},
              {"format", "binary"},
              {"description",
               "JSON of Inference-Header-Content-Length bytes, then the tensors that have "
               "binary_data_size."}}}}}};
}

Json paths() {
  const Json ok = answer("Yes.", "application/json", {{"type", "object"}});
  return {
      {"/v2", {{"get", operation("The server, its version and its extensions.", ok)}}},
      {"/v2/health/live", {{"get", operation("Whether the server runs.", ok)}}},
      {"/v2/health/ready", {{"get", operation("Whether it takes requests.", ok)}}},
      {"/v2/models", {{"get", operation("The models.", ok)}}},
      {"/v2/models/{model}",
       {{"get", operation("A model: its views as inputs, its outputs, its labels.", ok,
                          {{"parameters", Json::array({model_name()})}})}}},
      {"/v2/models/{model}/ready",
       {{"get",
         operation("Whether a model takes requests.", ok, {{"parameters", Json::array({model_name()})}})}}},
      {"/v2/models/{model}/infer",
       {{"post", prediction("Scores, probabilities and decisions (Open Inference Protocol v2).",
                            answer("The outputs.", "application/json", reference("InferResponse")),
                            request_body(infer_content()), Json::array({model_name()}))}}},
      {"/v1/suggest",
       {{"post", prediction("Tags of one item, best first.",
                            answer("The item's tags.", "application/json", reference("Suggestion")),
                            request_body({{"application/json", {{"schema", reference("Item")}}}}),
                            suggest_parameters())}}},
      {"/v1/suggest-batch",
       {{"post", prediction("The same for many items, one per line; a line that cannot be read has an error.",
                            answer("One answer per line.", "application/x-ndjson", json_lines()),
                            request_body({{"application/x-ndjson", {{"schema", json_lines()}}}}),
                            suggest_parameters())}}},
      {"/metrics",
       {{"get",
         operation("Counters for Prometheus.", answer("Counters.", "text/plain", {{"type", "string"}}))}}}};
}

// What bodies and answers hold.
Json number_list() {
  return {{"type", "array"}, {"items", {{"type", "number"}}}};
}

Json values_of_view() {
  return {{"oneOf", Json::array({number_list(),
                                 {{"type", "object"},
                                  {"required", {"indices", "values"}},
                                  {"properties",
                                   {{"indices", {{"type", "array"}, {"items", {{"type", "integer"}}}}},
                                    {"values", number_list()}}}},
                                 {{"type", "null"}}})}};
}

Json tensor_schema() {
  return {
      {"type", "object"},
      {"required", {"name", "shape", "datatype"}},
      {"properties",
       {{"name", text("The view.")},
        {"shape", {{"type", "array"}, {"items", {{"type", "integer"}}}, {"minItems", 2}, {"maxItems", 2}}},
        {"datatype", text("FP32 or FP64.")},
        {"data", {{"description", "Numbers, flat or by rows; null for a row that is missing."}}},
        {"parameters", {{"type", "object"}}}}}};
}

Json item_schema() {
  return {{"type", "object"},
          {"required", {"views"}},
          {"properties",
           {{"id", {{"type", {"string", "integer"}}}},
            {"views",
             {{"type", "object"},
              {"description", "Values by view; a view that is omitted or null is missing."},
              {"additionalProperties", values_of_view()}}},
            {"labels",
             {{"type", {"object", "array", "null"}},
              {"description",
               "Known labels of the item: 1, 0 or null by name, or the names of those that it has. They are "
               "not suggested, and change the probabilities of the others."}}}}}};
}

Json suggestion_schema() {
  return {{"type", "object"},
          {"properties",
           {{"id", {{"type", "string"}}},
            {"known",
             {{"type", "object"},
              {"description", "Labels given with the item, 1 or 0 by name."},
              {"additionalProperties", {{"type", "integer"}}}}},
            {"base",
             {{"type", "string"},
              {"enum", {"prior", "model"}},
              {"description",
               "With explain: the base, either the label's frequency in training or the model's output "
               "without views."}}},
            {"tags",
             {{"type", {"array", "null"}},
              {"items",
               {{"type", "object"},
                {"properties",
                 {{"label", {{"type", "string"}}},
                  {"probability", {{"type", "number"}}},
                  {"decided", {{"type", "boolean"}}},
                  {"score", {{"type", "number"}}},
                  {"base", {{"type", "number"}}},
                  {"views",
                   {{"type", "object"},
                    {"description", "With explain: what each view adds; score = base + their sum."},
                    {"additionalProperties", {{"type", "number"}}}}}}}}}}}}}};
}

Json infer_request_schema() {
  return {{"type", "object"},
          {"required", {"inputs"}},
          {"properties",
           {{"id", {{"type", "string"}}},
            {"inputs", {{"type", "array"}, {"items", tensor_schema()}}},
            {"outputs", {{"type", "array"}, {"items", {{"type", "object"}}}}},
            {"parameters", {{"type", "object"}}}}}};
}

Json infer_response_schema() {
  return {{"type", "object"},
          {"properties",
           {{"model_name", {{"type", "string"}}},
            {"model_version", {{"type", "string"}}},
            {"id", {{"type", "string"}}},
            {"outputs", {{"type", "array"}, {"items", {{"type", "object"}}}}}}}};
}

Json problem_schema() {
  return {{"type", "object"},
          {"properties",
           {{"title", {{"type", "string"}}},
            {"status", {{"type", "integer"}}},
            {"detail", {{"type", "string"}}},
            {"error", text("The same as detail.")},
            {"view", text("The view that does not fit, where one can be named.")},
            {"columns", {{"type", "integer"}, {"description", "Its columns in the request."}}},
            {"expected", {{"type", "integer"}, {"description", "Its columns in the model."}}}}}};
}

Json document() {
  return {{"openapi", "3.1.0"},
          {"info",
           {{"title", "Lacuna"},
            {"version", LACUNA_VERSION},
            {"description", "Tags for items whose views may be missing."},
            {"license", {{"name", "MIT"}, {"identifier", "MIT"}}}}},
          {"security", Json::array({{{"token", Json::array()}}, Json::object()})},
          {"paths", paths()},
          {"components",
           {{"schemas",
             {{"Item", item_schema()},
              {"Suggestion", suggestion_schema()},
              {"InferRequest", infer_request_schema()},
              {"InferResponse", infer_response_schema()},
              {"Problem", problem_schema()}}},
            {"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
}

}  // namespace

const std::string& openapi() {
  static const std::string text_of_document = document().dump() + "\n";
  return text_of_document;
}

}  // namespace lacuna::serve
