// lacuna serve as its clients meet it: the protocols, the refusals, tokens, several models.
#include "serve_model.h"

namespace lacuna {
namespace {

class Serve : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    small_ = new SmallModel;
    server_ = new ServeProcess({"photos=" + small_->path, "--max-body", "200000", "--max-rows", "64"});
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(server_->stop().code, 0);
    delete server_;
    delete small_;
  }
  static HttpAnswer ask(const std::string& request) { return server_->ask(request); }
  static HttpAnswer infer(const nlohmann::json& request) { return ask(post(infer_target(), request.dump())); }
  // A request that must be refused, with a detail that holds all of `words`.
  static void refused(const std::string& request, int status, const std::vector<std::string>& words) {
    const HttpAnswer answer = ask(request);
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_EQ(answer.header("Content-Type"), "application/problem+json");
    const auto problem = answer.json();
    EXPECT_EQ(problem["status"], status);
    EXPECT_EQ(problem["detail"], problem["error"]);
    for (const auto& word : words)
      EXPECT_NE(problem["detail"].get<std::string>().find(word), std::string::npos)
          << problem["detail"] << " lacks " << word;
  }

  static SmallModel* small_;
  static ServeProcess* server_;
};
SmallModel* Serve::small_ = nullptr;
ServeProcess* Serve::server_ = nullptr;

TEST_F(Serve, SaysWhatItIs) {
  EXPECT_EQ(ask(get("/v2")).json()["extensions"], nlohmann::json({"binary_tensor_data"}));
  EXPECT_EQ(ask(get("/v2/health/live")).status, 200);
  EXPECT_EQ(ask(get("/v2/health/ready")).status, 200);
  EXPECT_EQ(ask(get("/v2/models/photos/ready")).status, 200);
  const auto about = ask(get("/v2/models/photos")).json();
  EXPECT_EQ(about["inputs"].size(), 3u);
  EXPECT_EQ(about["inputs"][1]["shape"], nlohmann::json({-1, 9}));
  EXPECT_EQ(about["versions"], nlohmann::json({"1"}));
  EXPECT_EQ(about["labels"][2], "a \"quoted\" <name>");
  EXPECT_EQ(ask(get("/v2/models/photos/versions/1")).status, 200);
  refused(get("/v2/models/photos/versions/7"), 404, {"version 1", "7"});
  refused(get("/v2/models/photo"), 404, {"'photo'", "photos"});
}

TEST_F(Serve, PageAndDescription) {
  const HttpAnswer page = ask(get("/"));
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.header("Content-Security-Policy").find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page.body.find("<title>"), std::string::npos);
  const auto api = ask(get("/openapi.json")).json();
  EXPECT_EQ(api["openapi"], "3.1.0");
  EXPECT_TRUE(api["paths"].contains("/v2/models/{model}/infer"));
  EXPECT_EQ(api["components"]["schemas"]["Item"]["required"], nlohmann::json({"views"}));
  for (const char* status : {"400", "401", "404", "405", "408", "413", "415", "421", "431", "503"})
    EXPECT_TRUE(api["paths"]["/v1/suggest"]["post"]["responses"].contains(status)) << status;
  for (const char* member : {"view", "columns", "expected"})
    EXPECT_TRUE(api["components"]["schemas"]["Problem"]["properties"].contains(member)) << member;
  const HttpAnswer head = ask("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("Content-Length"), page.header("Content-Length"));
}

TEST_F(Serve, ScoresAreThoseOfTheModelForEveryPatternOfViews) {
  for (unsigned views = 1; views < 8; ++views) {
    const HttpAnswer answer = infer(small_->request(3, 4, views));
    ASSERT_EQ(answer.status, 200) << answer.body;
    expect_scores(answer.json(), small_->expected(small_->path, 3, 4, views));
  }
}

TEST_F(Serve, ProbabilitiesAndDecisions) {
  const auto answer = infer(small_->request(0, 2, 7)).json();
  const Model model = Model::load(small_->path);
  Matrix<float> scores = small_->expected(small_->path, 0, 2, 7);
  const auto decided = model.decide(scores);
  model.calibrate(scores);
  ASSERT_EQ(answer["outputs"][1]["name"], "probabilities");
  ASSERT_EQ(answer["outputs"][2]["name"], "decided");
  EXPECT_EQ(answer["outputs"][2]["datatype"], "BOOL");
  for (std::size_t k = 0; k < 12; ++k) {
    EXPECT_NEAR(answer["outputs"][1]["data"][k].get<float>(), scores.values()[k], 1e-5);
    EXPECT_EQ(answer["outputs"][2]["data"][k].get<bool>(), decided.values()[k] != 0);
  }
}

TEST_F(Serve, MissingViewsInEveryWayOfSayingIt) {
  const Matrix<float> expected = small_->expected(small_->path, 0, 1, 5);
  const auto with = [&](const nlohmann::json& data) {
    auto request = small_->request(0, 1, 7);
    request["inputs"][1]["data"] = data;
    return request.dump();
  };
  const std::string of_nan = [&] {
    std::string text = with("HERE");
    std::string numbers = "[NaN";
    for (int k = 1; k < 9; ++k) numbers += ",NaN";
    return text.replace(text.find("\"HERE\""), 6, numbers + "]");
  }();
  for (const std::string& body :
       {small_->request(0, 1, 5).dump(), with(nullptr), with(nlohmann::json::array({nullptr})),
        with(std::vector<nlohmann::json>(9, nullptr)), of_nan}) {
    const HttpAnswer answer = ask(post(infer_target(), body));
    ASSERT_EQ(answer.status, 200) << body << answer.body;
    expect_scores(answer.json(), expected);
  }
  // Rows by themselves, one of them missing a view.
  auto request = small_->request(0, 2, 7);
  request["inputs"][1]["data"] = {small_->row(1, 0), nullptr};
  const auto answer = infer(request).json();
  const Matrix<float> first = small_->expected(small_->path, 0, 1, 7),
                      second = small_->expected(small_->path, 1, 1, 5);
  for (std::size_t j = 0; j < 6; ++j) {
    EXPECT_NEAR(answer["outputs"][0]["data"][j].get<float>(), first(0, j), 1e-5);
    EXPECT_NEAR(answer["outputs"][0]["data"][6 + j].get<float>(), second(0, j), 1e-5);
  }
}

TEST_F(Serve, AnItemWithoutViewsHasNumbersInV2AndNoTagsInV1) {
  auto request = small_->request(0, 1, 1);
  request["inputs"][0]["data"] = nullptr;
  const HttpAnswer answer = infer(request);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto document = answer.json();
  for (const auto& score : document["outputs"][0]["data"]) EXPECT_TRUE(score.is_number());
  EXPECT_EQ(document["parameters"]["rows_without_views"], nlohmann::json::array({0}));
  EXPECT_FALSE(infer(small_->request(0, 1, 1)).json().contains("parameters"));
  // A threshold that the bare network is above: rows 1 and 3 are said to be bare, and nothing is decided for them.
  auto four = small_->request(0, 4, 1);
  for (std::size_t k = 0; k < 12; ++k)
    four["inputs"][0]["data"][12 + k] = four["inputs"][0]["data"][36 + k] = nullptr;
  four["outputs"] = {{{"name", "scores"}}, {{"name", "decided"}}};
  const auto said = infer(four).json();
  ASSERT_EQ(said["parameters"]["rows_without_views"], nlohmann::json({1, 3})) << said.dump();
  Matrix<float> scores(4, 6);
  for (std::size_t k = 0; k < 24; ++k) scores.values()[k] = said["outputs"][0]["data"][k].get<float>();
  const Matrix<std::uint8_t> decided = Model::load(small_->path).decide(scores);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 6; ++j)
      EXPECT_EQ(said["outputs"][1]["data"][i * 6 + j].get<bool>(), i % 2 == 0 && decided(i, j) != 0);
  EXPECT_EQ(ask(post("/v1/suggest", R"({"id": "a", "views": {}})")).json(),
            nlohmann::json({{"id", "a"}, {"tags", nullptr}, {"scores", nullptr}}));
}

std::string binary_request(const SmallModel& small, std::size_t count, unsigned views, bool doubles,
                           std::string& headers, bool binary_output) {
  nlohmann::json request = small.request(0, count, views);
  std::string tensors;
  for (auto& input : request["inputs"]) {
    std::size_t size = 0;
    for (const auto& number : input["data"]) {
      const float value = number.get<float>();
      const double wide = value;
      if (doubles)
        tensors.append(reinterpret_cast<const char*>(&wide), 8);
      else
        tensors.append(reinterpret_cast<const char*>(&value), 4);
      size += doubles ? 8 : 4;
    }
    input.erase("data");
    if (doubles) input["datatype"] = "FP64";
    input["parameters"] = {{"binary_data_size", size}};
  }
  if (binary_output) request["parameters"] = {{"binary_data_output", true}};
  const std::string json = request.dump();
  headers = "Inference-Header-Content-Length: " + std::to_string(json.size()) + "\r\n";
  return json + tensors;
}

TEST_F(Serve, BinaryTensors) {
  const Matrix<float> expected = small_->expected(small_->path, 0, 3, 7);
  for (const bool doubles : {false, true}) {
    std::string headers;
    const std::string body = binary_request(*small_, 3, 7, doubles, headers, false);
    const HttpAnswer answer = ask(post(infer_target(), body, headers));
    ASSERT_EQ(answer.status, 200) << answer.body;
    expect_scores(answer.json(), expected);
  }
  std::string headers;
  const std::string body = binary_request(*small_, 3, 7, false, headers, true);
  const HttpAnswer answer = ask(post(infer_target(), body, headers));
  ASSERT_EQ(answer.status, 200);
  const std::size_t json_size = std::stoul(answer.header("Inference-Header-Content-Length"));
  const auto json = nlohmann::json::parse(answer.body.substr(0, json_size));
  EXPECT_EQ(json["outputs"][0]["parameters"]["binary_data_size"], 72);
  EXPECT_EQ(json["outputs"][2]["parameters"]["binary_data_size"], 18);
  ASSERT_EQ(answer.body.size(), json_size + 72 + 72 + 18);
  for (std::size_t k = 0; k < 18; ++k) {
    float value = 0;
    std::memcpy(&value, answer.body.data() + json_size + 4 * k, 4);
    EXPECT_NEAR(value, expected.values()[k], 1e-5);
  }
}

TEST_F(Serve, ABinaryNumberBeyondFloat32IsRefusedAsSuch) {
  std::string headers;
  std::string body = binary_request(*small_, 2, 1, true, headers, false);
  const double huge = 1e300;
  std::memcpy(body.data() + body.size() - 8, &huge, 8);
  refused(post(infer_target(), body, headers), 400,
          {small_->data.views[0].name, "row 1", "column 11", "1e+300", "range of float32"});
}

TEST_F(Serve, RefusalsNameTheViewAndBothSizes) {
  auto request = small_->request(0, 1, 7);
  request["inputs"][1]["shape"] = {1, 8};
  refused(post(infer_target(), request.dump()), 400, {small_->data.views[1].name, "8 columns", "expects 9"});
  request = small_->request(0, 1, 7);
  request["inputs"][1]["data"] = {1, 2, 3};
  refused(post(infer_target(), request.dump()), 400, {"3 numbers", "needs 9"});
  request = small_->request(0, 1, 7);
  request["inputs"][1]["name"] = "nosuch";
  refused(post(infer_target(), request.dump()), 400, {"no view 'nosuch'", small_->data.views[0].name});
  request = small_->request(0, 1, 7);
  request["inputs"][2] = request["inputs"][0];
  refused(post(infer_target(), request.dump()), 400, {"twice"});
  request = small_->request(0, 2, 3);
  request["inputs"][1] = small_->request(0, 1, 2)["inputs"][0];
  refused(post(infer_target(), request.dump()), 400, {"1 rows", "have 2"});
  request = small_->request(0, 1, 7);
  request["inputs"][0]["data"][3] = nullptr;
  refused(post(infer_target(), request.dump()), 400, {"row 0", "column 3", "finite"});
  request = small_->request(0, 1, 7);
  request["outputs"] = {{{"name", "score"}}};
  refused(post(infer_target(), request.dump()), 400, {"no output 'score'"});
  refused(post(infer_target(), "{}"), 400, {"no 'inputs'"});
  refused(post(infer_target(), "{\"inputs\": [}"), 400, {"byte 12"});
  refused(post(infer_target(), ""), 400, {"expected '{'"});
  refused(post(infer_target(), "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["), 400, {"'{'"});
  refused(post(infer_target(), "{\"x\":" + std::string(40, '[')), 400, {"32 deep"});
  refused(post(infer_target(), small_->request(0, 65, 1).dump()), 413, {"65 rows", "64"});
  refused(get(infer_target()), 405, {"POST"});
  refused(post("/v2", "x"), 405, {"GET"});
  refused(post("/v1/sugest", "{}"), 404, {"/v1/sugest", "/openapi.json"});
  refused(post("/v1/suggest", "{}", "Content-Encoding: gzip\r\n"), 415, {"gzip"});
  refused(get("/etc/passwd"), 404, {"/openapi.json"});
  refused(get("/../../etc/passwd"), 404, {"nothing"});
}

// Rows of another number or length hold the same numbers, but not at the same places.
TEST_F(Serve, RefusalsOfItemsHaveTheSameMembers) {
  const std::string view = small_->data.views[1].name;
  const auto said = ask(post("/v1/suggest", "{\"views\": {\"" + view + "\": [1, 2]}}")).json();
  EXPECT_EQ(said["status"], 400) << said.dump();
  EXPECT_EQ(said["view"], view);
  EXPECT_EQ(said["columns"], 2);
  EXPECT_EQ(said["expected"], 9);
  const auto line = ask(post("/v1/suggest-batch", "{\"views\": {\"" + view + "\": [1, 2]}}")).json();
  EXPECT_NE(line["error"].get<std::string>().find("2 values, the model expects 9"), std::string::npos);
}

TEST_F(Serve, NestedDataHaveTheShapeThatIsSaid) {
  const Matrix<float> expected = small_->expected(small_->path, 0, 2, 2);
  const auto with = [&](const nlohmann::json& data, bool shape_last = false) {
    auto input = small_->request(0, 2, 2)["inputs"][0];
    const nlohmann::json first = {{"name", input["name"]}, {"datatype", "FP32"}};
    const std::string shape = "\"shape\":[2,9]", numbers = "\"data\":" + data.dump();
    std::string text = first.dump();
    text.pop_back();
    text += "," + (shape_last ? numbers + "," + shape : shape + "," + numbers) + "}";
    return post(infer_target(), "{\"inputs\":[" + text + "]}");
  };
  std::vector<float> all = small_->row(1, 0);
  const std::vector<float> second = small_->row(1, 1);
  all.insert(all.end(), second.begin(), second.end());
  const auto cut = [&](const std::vector<std::size_t>& widths) {
    nlohmann::json rows = nlohmann::json::array();
    std::size_t at = 0;
    for (const std::size_t width : widths) {
      rows.push_back(std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(at),
                                        all.begin() + static_cast<std::ptrdiff_t>(at + width)));
      at += width;
    }
    return rows;
  };
  for (const bool shape_last : {false, true}) {
    for (const auto& data : {nlohmann::json(all), cut({9, 9})}) {
      const HttpAnswer answer = ask(with(data, shape_last));
      ASSERT_EQ(answer.status, 200) << answer.body;
      expect_scores(answer.json(), expected);
    }
    refused(with(cut(std::vector<std::size_t>(9, 2)), shape_last), 400, {"[9, 2]", "[2, 9]"});
    refused(with(cut({18}), shape_last), 400, {"[1, 18]", "[2, 9]"});
    refused(with(cut({10, 8}), shape_last), 400, {"row 0", "10 numbers", "[2, 9]"});
    refused(with(cut({9, 8, 1}), shape_last), 400, {"row 1", "8 numbers", "[2, 9]"});
    auto mixed = cut({9});
    for (const float x : second) mixed.push_back(x);
    refused(with(mixed, shape_last), 400, {"numbers and rows"});
    refused(with({cut({9})[0], nullptr, nullptr}, shape_last), 400, {"[3, 9]", "[2, 9]"});
  }
  const auto problem = ask(with(cut({18}))).json();
  EXPECT_EQ(problem["nested"], nlohmann::json({1, 18}));
  EXPECT_EQ(problem["shape"], nlohmann::json({2, 9}));
}

TEST_F(Serve, BinaryTensorsThatDoNotFit) {
  std::string headers;
  const std::string body = binary_request(*small_, 3, 7, false, headers, false);
  refused(post(infer_target(), body.substr(0, body.size() - 1), headers), 400, {"84 bytes", "83 are left"});
  refused(post(infer_target(), body + "x", headers), 400, {"1 bytes follow"});
  refused(post(infer_target(), body, "Inference-Header-Content-Length: 99999999\r\n"), 400, {"99999999"});
  refused(post(infer_target(), body, "Inference-Header-Content-Length: many\r\n"), 400, {"many"});
  std::string wrong = body;
  wrong.replace(wrong.find("144"), 3, "140");
  refused(post(infer_target(), wrong, headers), 400, {"binary_data_size 140", "needs 144"});
}

TEST_F(Serve, KnownLabelsAreNoSuggestionsAndMoveTheOthers) {
  const auto& names = small_->data.label_names;
  auto item = small_->item(5, 7);
  const auto plain = ask(post("/v1/suggest?top=0", item.dump())).json();
  item["labels"] = {{names[0], 1}, {names[2], false}, {names[3], nullptr}};
  const auto answer = ask(post("/v1/suggest?top=0", item.dump())).json();
  EXPECT_EQ(answer["known"], nlohmann::json({{names[0], 1}, {names[2], 0}}));
  ASSERT_EQ(answer["tags"].size(), 4u);
  const Model model = Model::load(small_->path);
  Matrix<float> scores = small_->expected(small_->path, 5, 1, 7);
  Matrix<std::int8_t> known(1, 6);
  std::ranges::fill(known.values(), kUnknown);
  known(0, 0) = 1, known(0, 2) = 0;
  model.refine(known, scores);
  model.calibrate(scores);
  for (const auto& tag : answer["tags"]) {
    const auto j =
        static_cast<std::size_t>(std::ranges::find(names, tag["label"].get<std::string>()) - names.begin());
    EXPECT_EQ(known(0, j), kUnknown) << tag["label"];
    EXPECT_NEAR(tag["probability"].get<float>(), scores(0, j), 1e-5);
  }
  auto bare = small_->item(5, 7);
  const auto lines = ask(post("/v1/suggest-batch?top=0", item.dump() + "\n" + bare.dump())).body;
  EXPECT_EQ(nlohmann::json::parse(lines.substr(0, lines.find('\n'))), answer);
  EXPECT_EQ(nlohmann::json::parse(lines.substr(lines.find('\n'))), plain);
  refused(post("/v1/suggest?explain=true", item.dump()), 400, {"explain"});
  item["labels"] = {{"nosuch", 1}};
  refused(post("/v1/suggest", item.dump()), 400, {"nosuch"});
}

TEST_F(Serve, SuggestGivesTagsInOrder) {
  const auto item = small_->item(5, 7);
  const auto answer = ask(post("/v1/suggest?top=4", item.dump())).json();
  EXPECT_EQ(answer["id"], "item5");
  ASSERT_EQ(answer["tags"].size(), 4u);
  Matrix<float> scores = small_->expected(small_->path, 5, 1, 7);
  Model::load(small_->path).calibrate(scores);
  for (std::size_t k = 0; k + 1 < 4; ++k)
    EXPECT_GE(answer["tags"][k]["probability"].get<double>(),
              answer["tags"][k + 1]["probability"].get<double>());
  const auto best =
      std::max_element(scores.values().begin(), scores.values().end()) - scores.values().begin();
  EXPECT_EQ(answer["tags"][0]["label"], small_->data.label_names[static_cast<std::size_t>(best)]);
  refused(post("/v1/suggest", "{\"views\": {\"nosuch\": [1]}}"), 400, {"nosuch"});
  refused(post("/v1/suggest?tpo=4", item.dump()), 400, {"tpo"});
  refused(post("/v1/suggest?model=photo", item.dump()), 404, {"photos"});
}

TEST_F(Serve, AtMost64ItemsAreExplainedAtOnce) {
  std::string body;
  for (int k = 0; k < 64; ++k) body += "{\"views\": {}}\n";
  EXPECT_EQ(ask(post("/v1/suggest-batch?explain=true", body)).status, 200);
  refused(post("/v1/suggest-batch?explain=true", body + "{\"views\": {}}"), 413, {"65 lines", "64"});
}

TEST_F(Serve, ValuesThatAreNotKnownAreRefusedUnlessToldOtherwise) {
  const auto item = [&](const std::string& value) {
    std::string numbers = value;
    for (int k = 1; k < 9; ++k) numbers += ",0.5";
    return post("/v1/suggest?top=0",
                "{\"views\": {\"" + small_->data.views[1].name + "\": [" + numbers + "]}}");
  };
  refused(item("NaN"), 400, {small_->data.views[1].name, "NaN", "leave out", "write null", "--empty mean"});
  refused(item("null"), 400,
          {small_->data.views[1].name, "value 0 is null", "--empty mean", "whole view out"});
  const ServeProcess filling({"photos=" + small_->path, "--empty", "zero"});
  const auto filled = filling.ask(item("null"));
  ASSERT_EQ(filled.status, 200) << filled.body;
  EXPECT_EQ(filled.body, filling.ask(item("0")).body);
}

TEST_F(Serve, ExplanationsAddUp) {
  const auto answer = ask(post("/v1/suggest?top=0&explain=true", small_->item(5, 5).dump())).json();
  ASSERT_EQ(answer["tags"].size(), 6u) << answer.dump();
  EXPECT_EQ(answer["base"], "prior");
  for (const auto& tag : answer["tags"]) {
    ASSERT_EQ(tag["views"].size(), 2u);
    double sum = tag["base"].get<double>();
    for (const auto& [name, value] : tag["views"].items()) sum += value.get<double>();
    EXPECT_NEAR(sum, tag["score"].get<double>(), 1e-3) << tag.dump();
    const double p = tag["probability"].get<double>();
    EXPECT_NEAR(tag["score"].get<double>(), std::log(p / (1 - p)), 1e-3) << tag.dump();
  }
  const Model model = Model::load(small_->path);  // the test means something: calibration moves the scores
  ASSERT_FALSE(model.calibration().empty());
  const Matrix<float> raw = small_->expected(small_->path, 5, 1, 5);
  double moved = 0;
  for (const auto& tag : answer["tags"])
    for (std::size_t j = 0; j < 6; ++j)
      if (tag["label"] == small_->data.label_names[j])
        moved = std::max(moved, std::abs(tag["probability"].get<double>() - static_cast<double>(raw(0, j))));
  EXPECT_GT(moved, .01);
}

TEST(ServeModels, MetadataNameTheColumnsThatAModelKnows) {
  SmallModel small;
  EXPECT_FALSE(
      ServeProcess({small.path}).ask(get("/v2/models/photos")).json()["inputs"][1].contains("parameters"));
  std::vector<std::string> names;
  for (int j = 0; j < 9; ++j) names.push_back(fmt::format("gene {}", j));
  small.data.views[1].column_names = names;
  small.train(small.path, 1);
  const auto inputs = ServeProcess({small.path}).ask(get("/v2/models/photos")).json()["inputs"];
  EXPECT_EQ(inputs[1]["parameters"]["columns"], names);
  EXPECT_EQ(inputs[1]["shape"], nlohmann::json({-1, 9}));
  EXPECT_FALSE(inputs[0].contains("parameters"));
}

TEST_F(Serve, BatchKeepsTheOrderAndReportsBadLines) {
  const std::string body =
      small_->item(0, 7).dump() + "\n{\"views\": {}}\nnot json\r\n" + small_->item(1, 1).dump() + "\n";
  const HttpAnswer answer = ask(post("/v1/suggest-batch?top=1", body));
  ASSERT_EQ(answer.status, 200) << answer.body;
  std::vector<nlohmann::json> lines;
  std::istringstream text(answer.body);
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["id"], "item0");
  EXPECT_TRUE(lines[1]["tags"].is_null());
  EXPECT_EQ(lines[2]["line"], 3);
  EXPECT_TRUE(lines[2].contains("error"));
  EXPECT_EQ(lines[3]["id"], "item1");
}

TEST_F(Serve, ChunksAndExpectations) {
  const std::string body = small_->request(0, 1, 7).dump();
  std::string chunks;
  for (std::size_t at = 0; at < body.size(); at += 100) {
    const std::string piece = body.substr(at, 100);
    chunks += fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
  }
  Connection connection(server_->port());
  connection.send("POST " + infer_target() +
                  " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks +
                  "0\r\n\r\n");
  EXPECT_EQ(connection.read().status, 200);
  connection.send("POST " + infer_target() +
                  " HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: " +
                  std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(connection.read().status, 100);
  connection.send(body);
  EXPECT_EQ(connection.read().status, 200);
}

TEST(ServeTokens, RequestsNeedOne) {
  const SmallModel small;
  const std::string file = small.folder / "tokens";
  std::ofstream(file) << "# for tests\n0123456789abcdef\nfedcba9876543210\n";
  EXPECT_NE(run({"serve", small.path, "--token-file", file}).err.find("chmod 600"), std::string::npos);
  std::filesystem::permissions(file,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  ServeProcess server({small.path, "--token-file", file});
  const auto with = [&](const std::string& token) {
    return server.ask(post(infer_target(), small.request(0, 1, 7).dump(), token)).status;
  };
  EXPECT_EQ(with(""), 401);
  EXPECT_EQ(with("Authorization: Bearer 0123456789abcdeF\r\n"), 401);
  EXPECT_EQ(with("Authorization: Bearer 0123456789abcde\r\n"), 401);
  EXPECT_EQ(with("Authorization: Bearer \r\n"), 401);
  EXPECT_EQ(with("Authorization: Basic 0123456789abcdef\r\n"), 401);
  EXPECT_EQ(with("Authorization: Bearer 0123456789abcdef\r\n"), 200);
  EXPECT_EQ(with("authorization: bearer fedcba9876543210\r\n"), 200);
  EXPECT_EQ(server.ask(get("/v2/health/ready")).status, 200);
  EXPECT_EQ(server.ask(get("/")).status, 200);
  EXPECT_EQ(server.ask(get("/metrics")).status, 401);
  EXPECT_NE(server.ask(get("/metrics")).header("WWW-Authenticate").find("Bearer"), std::string::npos);
}

std::string asked_as(const std::string& host) {
  return "GET /v2/models HTTP/1.1\r\n" + host + "\r\n";
}

TEST(ServeHosts, APageFromElsewhereIsRefusedOnLoopback) {
  const SmallModel small;
  const ServeProcess server({small.path, "--host", "lacuna.example.org,Other"});
  for (const char* host : {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.3.2.1:80", "[::1]:8080", "[::1]",
                           "lacuna.example.org", "other:443"})
    EXPECT_EQ(server.ask(asked_as(fmt::format("Host: {}\r\n", host))).status, 200) << host;
  EXPECT_EQ(server.ask("GET /v2 HTTP/1.0\r\n\r\n").status, 200);  // of no browser
  for (const char* host : {"evil.example.org", "127.0.0.1.evil.org", "localhost.evil.org:8080", "[::2]", "[",
                           "10.0.0.1", "localhost@evil.org"}) {
    const HttpAnswer answer = server.ask(asked_as(fmt::format("Host: {}\r\n", host)));
    EXPECT_EQ(answer.status, 421) << host;
    EXPECT_NE(answer.body.find("--host"), std::string::npos) << answer.body;
  }
  const std::string body = small.item(0, 7).dump();
  const std::string sent = fmt::format(
      "POST /v1/suggest HTTP/1.1\r\nHost: evil.org\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
  EXPECT_EQ(server.ask(sent).status, 421);
  const Ended idle = run({"serve", small.path, "--listen", "0.0.0.0:0", "--host", "a"});
  EXPECT_EQ(idle.code, 2);
  EXPECT_NE(idle.err.find("--host a has no effect with --listen 0.0.0.0:0"), std::string::npos) << idle.err;
}

TEST(ServeModels, SeveralAtOnce) {
  const SmallModel small;
  const std::string other = small.folder / "other.safetensors";
  small.train(other, 77);
  ServeProcess server({small.path, "second one=" + other});
  const std::string body = small.request(0, 2, 7).dump();
  expect_scores(server.ask(post(infer_target(), body)).json(), small.expected(small.path, 0, 2, 7));
  expect_scores(server.ask(post("/v2/models/second%20one/infer", body)).json(),
                small.expected(other, 0, 2, 7));
  EXPECT_EQ(server.ask(post("/v1/suggest", small.item(0, 7).dump())).status, 400);
  EXPECT_EQ(server.ask(post("/v1/suggest?model=second%20one", small.item(0, 7).dump())).status, 200);
  EXPECT_EQ(server.ask(get("/v2/models")).json()["models"].size(), 2u);
}

TEST(ServeStart, SaysWhatIsWrong) {
  const SmallModel small;
  Ended ended = run({"serve", small.folder / "nothing.safetensors"});
  EXPECT_EQ(ended.code, 3) << ended.err;
  ended = run({"serve", small.path, small.path});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("NAME=PATH"), std::string::npos);
  ended = run({"serve", small.path, "--listen", "here"});
  EXPECT_EQ(ended.code, 2);
  ServeProcess server({small.path});
  ended = run({"serve", small.path, "--listen", "127.0.0.1:" + std::to_string(server.port())});
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("cannot listen on 127.0.0.1:"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace lacuna
