#include "serve/service.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "base/error.h"
#include "base/text.h"
#include "serve/infer_answer.h"
#include "serve/openapi.h"
#include "serve/page.h"
#include "serve/scan.h"
#include "serve/suggest.h"

#ifndef LACUNA_VERSION
#define LACUNA_VERSION "unknown"
#endif

namespace lacuna::serve {
namespace {

using Json = nlohmann::ordered_json;

Reply json_reply(const Json& document) {
  Reply reply;
  reply.body = document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return reply;
}

Reply text_reply(std::string type, std::string body) {
  Reply reply;
  reply.type = std::move(type);
  reply.body = std::move(body);
  return reply;
}

Reply wrong_method(const Request& request, const char* allowed) {
  Reply reply =
      problem(405, fmt::format("{} {} is not possible; use {}", request.method, request.target, allowed));
  reply.headers = fmt::format("Allow: {}\r\n", allowed);
  return reply;
}

// Targets that only read; the first group needs no token.
constexpr std::string_view kPublic[] = {"/", "/openapi.json", "/v2/health/live", "/v2/health/ready"};

bool is_public(std::string_view target) {
  for (const std::string_view one : kPublic)
    if (target == one) return true;
  return false;
}
bool is_prediction(std::string_view target) {
  return target == "/v1/suggest" || target == "/v1/suggest-batch" ||
         (target.starts_with("/v2/models/") && target.ends_with("/infer"));
}

Json describe(const ServedModel& served) {
  Json inputs = Json::array(), outputs = Json::array();
  for (const ViewColumns& view : served.model.columns().views()) {
    Json& input =
        inputs.emplace_back(Json{{"name", view.view}, {"datatype", "FP32"}, {"shape", {-1, view.count}}});
    if (!view.names.empty()) input["parameters"] = {{"columns", view.names}};
  }
  for (const char* name : {"scores", "probabilities", "decided"})
    outputs.push_back({{"name", name},
                       {"datatype", name == std::string_view("decided") ? "BOOL" : "FP32"},
                       {"shape", {-1, served.labels()}}});
  const Calibration& calibration = served.model.calibration();
  return {{"name", served.name},
          {"versions", {served.version}},
          {"platform", "lacuna_safetensors"},
          {"inputs", inputs},
          {"outputs", outputs},
          {"parameters",
           {{"method", served.model.method().traits().name},
            {"preset", served.model.preset()},
            {"calibrated", !calibration.empty()},
            {"aim", calibration.empty() ? "scores above 0.5" : calibration.aim().text()}}},
          {"labels", served.model.label_names()}};
}

}  // namespace

// "/v2/models/NAME[/versions/V]REST"
ModelPointer Service::model_of(std::string_view target, std::string_view& rest) const {
  constexpr std::string_view kModels = "/v2/models/";
  target.remove_prefix(kModels.size());
  const std::size_t slash = target.find('/');
  const std::string name = percent_decoded(target.substr(0, slash));
  rest = slash == std::string_view::npos ? std::string_view() : target.substr(slash);
  ModelPointer model = registry_.find(name);
  if (!model) {
    std::vector<std::string> names;
    for (const auto& one : registry_.all()) names.push_back(one->name);
    refuse(404, "there is no model '{}'{} (there are {})", name, did_you_mean(name, names),
           join(names, ", "));
  }
  constexpr std::string_view kVersions = "/versions/";
  if (rest.starts_with(kVersions)) {
    rest.remove_prefix(kVersions.size());
    const std::string_view version = rest.substr(0, rest.find('/'));
    rest.remove_prefix(version.size());
    if (version != model->version)
      refuse(404, "model '{}' has version {} now, not {}", name, model->version, version);
  }
  return model;
}

bool Service::refuses(const Request& request, Reply& reply) const {
  if (!hosts_.allow(request.host)) {
    reply = problem(
        421, fmt::format("this server listens on loopback and is not called '{}'; ask for localhost, or "
                         "start it with --host {}",
                         request.host, host_name(request.host)));
    return true;
  }
  if (!is_public(request.target) && !tokens_.allow(request.authorization)) {
    reply =
        problem(401, request.authorization.empty() ? "this server requires a token: Authorization: Bearer "
                                                     "TOKEN"
                                                   : "the token is not one of this server's");
    return true;
  }
  if (is_prediction(request.target) && request.method != "POST") {
    reply = wrong_method(request, "POST");
    return true;
  }
  return false;
}

Reply Service::answer(const Request& request) const {
  const std::string_view target = request.target;
  const bool known = is_public(target) || target == "/metrics" || target == "/v2" || target == "/v2/" ||
                     target == "/v2/models" || target.starts_with("/v2/models/");
  if (known && request.method != "GET" && request.method != "HEAD") return wrong_method(request, "GET, HEAD");
  if (target == "/") {
    Reply reply = text_reply("text/html; charset=utf-8", page());
    reply.headers = page_headers();
    return reply;
  }
  if (target == "/openapi.json") return text_reply("application/json", openapi());
  if (target == "/metrics") return text_reply("text/plain; version=0.0.4; charset=utf-8", counters_.text());
  if (target == "/v2" || target == "/v2/")
    return json_reply(
        {{"name", "lacuna"}, {"version", LACUNA_VERSION}, {"extensions", {"binary_tensor_data"}}});
  if (target == "/v2/health/live") return json_reply({{"live", true}});
  if (target == "/v2/health/ready")
    return draining_ ? problem(503, "the server is shutting down") : json_reply({{"ready", true}});
  if (target == "/v2/models" || target == "/v2/models/") {
    Json models = Json::array();
    for (const auto& model : registry_.all())
      models.push_back({{"name", model->name}, {"version", model->version}});
    return json_reply({{"models", models}});
  }
  if (target.starts_with("/v2/models/")) {
    std::string_view rest;
    const ModelPointer model = model_of(target, rest);
    if (rest.empty()) return json_reply(describe(*model));
    if (rest == "/ready") return json_reply({{"name", model->name}, {"ready", true}});
  }
  refuse(404, "there is nothing at {}; /openapi.json lists the paths", target);
}

void Service::handle(const Request& request, Respond respond) {
  Reply refusal;
  if (refuses(request, refusal)) return respond(std::move(refusal));
  try {
    if (request.target == "/v1/suggest" || request.target == "/v1/suggest-batch")
      return suggest(request, request.target.ends_with("-batch"), respond);
    if (is_prediction(request.target)) {
      std::string_view rest;
      const ModelPointer model = model_of(request.target, rest);
      if (rest != "/infer")
        refuse(404, "there is nothing at {}; /openapi.json lists the paths", request.target);
      return infer(request, model, respond);
    }
    respond(answer(request));
  } catch (const Refusal& refused) {
    respond(problem(refused.status, refused.what(), refused.members));
  } catch (const Error& error) {
    respond(problem(error.code() == Exit::failed ? 500 : 400, error.what()));
  } catch (const std::bad_alloc&) {
    respond(problem(503, "not enough memory for this request; send fewer rows"));
  } catch (const std::exception& error) {
    respond(problem(500, error.what()));
  }
}

void Service::submit(const Request& request, const ModelPointer& model, Rows rows, Where where,
                     std::function<Reply(const Outcome&)> write, Respond respond) {
  const auto written = [write = std::move(write)](const Outcome& outcome) {
    try {
      return write(outcome);
    } catch (const std::exception& error) {
      return problem(500, error.what());
    }
  };
  Job job;
  job.model = model;
  job.rows = std::move(rows);
  if (where == Where::worker)
    job.done = [loop = request.loop, written, respond](const Outcome& outcome) {
      boost::asio::post(*loop, [reply = written(outcome), respond]() mutable { respond(std::move(reply)); });
    };
  else
    job.done = [loop = request.loop, written, respond](const Outcome& outcome) {
      boost::asio::post(*loop, [outcome, written, respond] { respond(written(outcome)); });
    };
  if (!queue_.submit(job))
    respond(problem(503,
                    fmt::format("{} rows are waiting for a prediction, at most {} may; try again later",
                                counters_.queued_rows.load(), limits_.queue_rows)));
}

void Service::infer(const Request& request, const ModelPointer& model, Respond respond) {
  auto inference =
      std::make_shared<Inference>(read_inference(request.body, request.json_bytes, *model, limits_));
  Rows rows = inference->rows;
  submit(
      request, model, std::move(rows), Where::loop,
      [inference, model](const Outcome& outcome) { return write_inference(*inference, *model, outcome); },
      std::move(respond));
}

void Service::suggest(const Request& request, bool many, Respond respond) {
  const SuggestSettings settings = read_settings(request.query);
  ModelPointer model = settings.model.empty() ? registry_.only() : registry_.find(settings.model);
  if (!model) {
    std::vector<std::string> names;
    for (const auto& one : registry_.all()) names.push_back(one->name);
    if (settings.model.empty()) refuse(400, "say which model: ?model=NAME (there are {})", join(names, ", "));
    refuse(404, "there is no model '{}'{} (there are {})", settings.model,
           did_you_mean(settings.model, names), join(names, ", "));
  }
  auto items = std::make_shared<Suggestions>(read_items(request.body, many, *model, settings, limits_));
  if (items->rows.count == 0) return respond(write_suggestions(*items, *model, {}));
  Rows rows = items->rows;
  submit(
      request, model, std::move(rows), settings.explain ? Where::worker : Where::loop,
      [items, model](const Outcome& outcome) { return write_suggestions(*items, *model, outcome); },
      std::move(respond));
}

}  // namespace lacuna::serve
