#include "data/jsonl.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "base/random.h"
#include "data/line_stream.h"

namespace lacuna {
namespace {

std::vector<ViewShape> shapes() {
  return {{"rna", 3, {"g1", "g2", "g3"}, {}}, {"img", 2, {}, {}}, {"ünï", 1, {}, {}}};
}

// The message, or "" if the line was taken.
std::string refused(const std::string& line, ItemBlock& block) {
  try {
    parse_item(line, block, 0);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::data) << line;
    EXPECT_FALSE(block.has_any(0)) << line;
    EXPECT_EQ(block.id(0), "") << line;
    return error.what();
  }
  return "";
}

TEST(Jsonl, AnItemWithDenseSparseAndMissingViews) {
  ItemBlock block(shapes(), 2);
  parse_item(R"( {"id": "a", "views": {"rna": [0.1, -2e1, 3], "img": null}} )", block, 0);
  parse_item(
      R"({"views":{"img":{"values":[7.5],"indices":[1]},"\u00fcn\u00EF":[1]},"id":17,"other":{"a":[1,{}],"b":"x"}})",
      block, 1);
  EXPECT_EQ(block.id(0), "a");
  EXPECT_EQ(block.id(1), "17");
  const Dataset data = block.dataset(2, "stream");
  ASSERT_EQ(data.views.size(), 3u);
  EXPECT_TRUE(data.has(0, 0) && !data.has(0, 1) && !data.has(0, 2));
  EXPECT_TRUE(!data.has(1, 0) && data.has(1, 1) && data.has(1, 2));
  std::vector<float> row(3);
  data.views[0].copy_row(0, row);
  EXPECT_EQ(row, (std::vector<float>{.1f, -20, 3}));
  row.resize(2);
  data.views[1].copy_row(1, row);
  EXPECT_EQ(row, (std::vector<float>{0, 7.5f}));
  data.check("the block");
}

TEST(Jsonl, ARowIsUsedAgain) {
  ItemBlock block(shapes(), 1);
  parse_item(R"({"id":"a","views":{"rna":[1,2,3],"img":[1,2]}})", block, 0);
  parse_item(R"({"views":{}})", block, 0);
  EXPECT_FALSE(block.has_any(0));
  EXPECT_EQ(block.id(0), "");
}

TEST(Jsonl, WhatIsWrongIsSaid) {
  ItemBlock block(shapes(), 1);
  const std::pair<const char*, const char*> cases[] = {
      {"", "end of the line"},
      {"[1,2]", "an item is a JSON object"},
      {"{}", "has no \"views\""},
      {R"({"view":{"rna":[1,2,3]}})", "is \"view\" meant?"},
      {R"({"id":"a","id":"b","views":{}})", "\"id\" occurs twice"},
      {R"({"views":{},"views":{}})", "\"views\" occurs twice"},
      {R"({"x":1,"x":2,"views":{}})", "\"x\" occurs twice"},
      {R"({"views":{"rna":[1,2,3],"rna":[1,2,3]}})", "\"rna\" occurs twice"},
      {R"({"views":{"rna":null,"rna":[1,2,3]}})", "\"rna\" occurs twice"},
      {R"({"views":{"rnaa":[1,2,3]}})", "no view 'rnaa'; did you mean 'rna'? (it has rna, img, ünï)"},
      {R"({"views":{"rna":[1,2]}})", "view 'rna' has 2 values, the model expects 3"},
      {R"({"views":{"rna":[1,2,3,4]}})", "view 'rna' has 4 values, the model expects 3"},
      {R"({"views":{"rna":[1,NaN,3]}})", "NaN"},
      {R"({"views":{"rna":[1,-Infinity,3]}})", "Infinity"},
      {R"({"views":{"rna":[1,1e39,3]}})", "beyond the range of float32"},
      {R"({"views":{"rna":[1,1e999999999999,3]}})", "beyond the range of float32"},
      {R"({"views":{"rna":[1,null,3]}})", "value 1 ('g2') is null"},
      {R"({"views":{"rna":[1,"2",3]}})", "expected a number, found '\"2\"'"},
      {R"({"views":{"rna":[1,[2],3]}})", "expected a number"},
      {R"({"views":{"rna":[1,2,3,]}})", "expected a number"},
      {R"({"views":{"rna":[1 2 3]}})", "expected ',' or ']'"},
      {R"({"views":{"rna":[01,2,3]}})", "expected a number"},
      {R"({"views":{"rna":[1.,2,3]}})", "expected a number"},
      {R"({"views":{"rna":[.5,2,3]}})", "expected a number"},
      {R"({"views":{"rna":[+1,2,3]}})", "expected a number"},
      {R"({"views":{"rna":"none"}})", "a list of numbers"},
      {R"({"views":{"rna":{"indices":[0],"values":[1,2]}}})", "the numbers of indices and values differ"},
      {R"({"views":{"rna":{"indices":[0,1],"values":[1]}}})", "the numbers of indices and values differ"},
      {R"({"views":{"rna":{"indices":[3],"values":[1]}}})", "index 3 is out of range"},
      {R"({"views":{"rna":{"indices":[-1],"values":[1]}}})", "non-negative whole number"},
      {R"({"views":{"rna":{"indices":[1.5],"values":[1]}}})", "non-negative whole number"},
      {R"({"views":{"rna":{"indices":[1,1],"values":[1,2]}}})", "each comes once"},
      {R"({"views":{"rna":{"indices":[1]}}})", "\"values\" is not there"},
      {R"({"views":{"rna":{"index":[1]}}})", "found \"index\""},
      {R"({"views":[1]})", "\"views\" is an object"},
      {R"({"id":1.5,"views":{}})", "an id is a text or a whole number"},
      {R"({"id":null,"views":{}})", "an id is a text or a whole number"},
      {R"({"id":007,"views":{}})", "an id is a text or a whole number, found '007'"},
      {R"({"id":"","views":{}})", "cannot be empty"},
      {R"({"id":"\ud800","views":{}})", "surrogate"},
      {R"({"id":"\u0000","views":{}})", "character 0"},
      {R"({"id":"\x","views":{}})", "unknown escape"},
      {"{\"id\":\"\xff\",\"views\":{}}", "not UTF-8"},
      {"{\"id\":\"a\tb\",\"views\":{}}", "control character"},
      {R"({"id":"a)", "no closing quote"},
      {R"({"views":{}} {})", "something follows"},
      {R"({"views":{},"x":tru})", "expected a value"},
      {R"({"views":{})", "expected ',' or '}', found the end of the line"},
  };
  for (const auto& [line, expected] : cases) {
    const std::string message = refused(line, block);
    EXPECT_NE(message.find(expected), std::string::npos) << line << "\n  " << message;
  }
}

TEST(Jsonl, DeepNestingIsRefused) {
  ItemBlock block(shapes(), 1);
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}")}) {
    std::string line = R"({"x":)";
    for (int k = 0; k < 200000; ++k) line += open;
    EXPECT_NE(refused(line, block).find("nested more than 64 deep"), std::string::npos);
    line = R"({"x":)";
    for (int k = 0; k < 60; ++k) line += open;
    line += "1";
    for (int k = 0; k < 60; ++k) line += close;
    EXPECT_EQ(refused(line + R"(,"views":{}})", block), "");
  }
}

TEST(Jsonl, EmptyCellsAreFilledWhereThatIsAskedFor) {
  auto views = shapes();
  views[0].fill = {5, 6, 7};
  ItemBlock block(views, 1);
  parse_item(R"({"views":{"rna":[null,2,null]}})", block, 0);
  EXPECT_EQ(std::vector<float>(block.values(0, 0).begin(), block.values(0, 0).end()),
            (std::vector<float>{5, 2, 7}));
  EXPECT_NE(refused(R"({"views":{"rna":[null,2,null,null]}})", block).find("has 4 values"),
            std::string::npos);
}

// Numbers are the floats nearest to what is written, whichever way they are computed.
TEST(Jsonl, NumbersAreCorrectlyRounded) {
  Random random(1, Purpose::test);
  const auto check = [](const std::string& text) {
    float expected = 0, value = 0;
    std::from_chars(text.data(), text.data() + text.size(), expected);
    const char* end = parse_json_number(text.data(), text.data() + text.size(), value);
    ASSERT_EQ(end, text.data() + text.size()) << text;
    ASSERT_EQ(std::memcmp(&value, &expected, sizeof(float)), 0) << text << " gave " << value;
  };
  for (int k = 0; k < 200000; ++k) {
    const auto bits = static_cast<std::uint32_t>(random.bits());
    float x = 0;
    std::memcpy(&x, &bits, sizeof x);
    if (!std::isfinite(x)) continue;
    check(fmt::format("{}", x));
    check(fmt::format("{:.17g}", static_cast<double>(x)));
    // Exactly between two floats, and a little beside.
    const double next = std::nextafter(x, 1e38f), middle = (static_cast<double>(x) + next) / 2;
    if (std::abs(middle) > 1e-30) {
      check(fmt::format("{:.60g}", middle));
      check(fmt::format("{:.17g}", middle));
      check(fmt::format("{:.17g}", std::nextafter(middle, 1e300)));
    }
  }
  for (const char* text :
       {"0", "-0", "0.0", "16777217", "16777217.0000000001", "1e-46", "1e-400", "0.00000000000000000000001",
        "3.4028235e38", "1e-45", "123456789012345678901234567890", "0.1e-22", "1E5", "1e+5"}) {
    float value = 1;
    const std::string number = text;
    ASSERT_NE(parse_json_number(number.data(), number.data() + number.size(), value), nullptr) << text;
    ASSERT_EQ(value, static_cast<float>(std::strtof(text, nullptr))) << text;
  }
  float value = 0;
  const std::string large = "1" + std::string(400, '0'), small = "0." + std::string(400, '0') + "1";
  EXPECT_EQ(parse_json_number(large.data(), large.data() + large.size(), value), nullptr);
  EXPECT_NE(parse_json_number(small.data(), small.data() + small.size(), value), nullptr);
  EXPECT_EQ(value, 0);
}

TEST(Jsonl, TextsAreEscaped) {
  const std::string all = "a\"b\\c\n\x01ü";
  std::string out;
  append_json(out, all);
  EXPECT_EQ(nlohmann::json::parse(out).get<std::string>(), all);
}

// ---- lines ----

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { EXPECT_EQ(pipe(ends), 0); }
  ~Pipe() {
    close(ends[0]);
    finish();
  }
  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = write(ends[1], text.data(), text.size());
      ASSERT_GT(n, 0);
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void finish() {
    if (ends[1] >= 0) close(ends[1]);
    ends[1] = -1;
  }
};

TEST(LineStream, TakesWhatIsThereAndDoesNotWaitForMore) {
  Pipe pipe;
  LineStream stream(pipe.ends[0], "pipe", 100);
  std::vector<LineStream::Line> lines;
  pipe.send("\n  \n{one}\r\n");
  EXPECT_EQ(stream.peek(), '{');
  ASSERT_TRUE(stream.next(10, lines));  // would hang here if it waited for more
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text, "{one}");
  EXPECT_EQ(lines[0].number, 3u);
  pipe.send("a\nb\nc\nd");
  ASSERT_TRUE(stream.next(2, lines));
  ASSERT_EQ(lines.size(), 2u);
  ASSERT_TRUE(stream.next(2, lines));
  ASSERT_EQ(lines.size(), 1u);  // d is not whole
  EXPECT_EQ(lines[0].text, "c");
  pipe.finish();
  ASSERT_TRUE(stream.next(2, lines));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text, "d");
  EXPECT_EQ(lines[0].number, 7u);
  EXPECT_FALSE(stream.next(2, lines));
}

TEST(LineStream, AnEndlessLineIsToldAtOnceAndTakesNoMemory) {
  Pipe pipe;
  LineStream stream(pipe.ends[0], "pipe", 1000);
  std::thread sender([&] {
    pipe.send("first\n");
    const std::string chunk(1 << 16, 'x');
    for (int k = 0; k < 400; ++k) pipe.send(chunk);  // 26 MB
    pipe.send("\nlast\n");
    pipe.finish();
  });
  std::vector<LineStream::Line> lines;
  std::vector<std::string> seen;
  while (stream.next(10, lines))
    for (const auto& line : lines)
      seen.push_back(line.too_long ? fmt::format("{} too long", line.number) : std::string(line.text));
  sender.join();
  EXPECT_EQ(seen, (std::vector<std::string>{"first", "2 too long", "last"}));
}

TEST(LineStream, ByteOrderMarks) {
  Pipe pipe;
  LineStream stream(pipe.ends[0], "pipe", 100);
  pipe.send("\xEF\xBB\xBFid,a\n");
  EXPECT_EQ(stream.peek(), 'i');
  std::vector<LineStream::Line> lines;
  ASSERT_TRUE(stream.next(1, lines));
  EXPECT_EQ(lines[0].text, "id,a");
  Pipe other;
  LineStream wide(other.ends[0], "pipe", 100);
  other.send(std::string_view("\xFF\xFE{\0", 4));
  EXPECT_THROW(wide.peek(), Error);
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()), 0);
  std::string input = text;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

TEST(LineStream, GzipIsUnpackedAsItComes) {
  std::string text;
  for (int k = 0; k < 40'000; ++k) text += "line " + std::to_string(k) + "\n";
  const auto lines_in = [](const std::string& bytes) {
    Pipe pipe;
    std::thread sender([&] {
      for (std::size_t at = 0; at < bytes.size(); at += 1000) pipe.send(bytes.substr(at, 1000));
      pipe.finish();
    });
    std::vector<LineStream::Line> lines;
    std::size_t count = 0;
    std::string last, wrong;
    try {
      LineStream stream(pipe.ends[0], "pipe", 100);
      EXPECT_EQ(stream.peek(), 'l');
      while (stream.next(2048, lines)) count += lines.size(), last = lines.back().text;
    } catch (const Error& error) {
      wrong = error.what();
      char rest[4096];
      while (read(pipe.ends[0], rest, sizeof rest) > 0) {
      }
    }
    sender.join();
    return std::tuple(count, last, wrong);
  };
  const std::string packed = gzip(text);
  EXPECT_EQ(lines_in(packed), (std::tuple(std::size_t{40'000}, std::string("line 39999"), std::string())));
  // Several streams one after another are one text.
  EXPECT_EQ(lines_in(packed + gzip("line x\n") + gzip("")),
            (std::tuple(std::size_t{40'001}, std::string("line x"), std::string())));
  EXPECT_NE(std::get<2>(lines_in(packed.substr(0, packed.size() - 20))).find("cut off"), std::string::npos);
  std::string damaged = packed;
  for (std::size_t k = packed.size() / 2; k < packed.size() / 2 + 40; ++k)
    damaged[k] = static_cast<char>(~damaged[k]);
  EXPECT_NE(std::get<2>(lines_in(damaged)).find("damaged gzip"), std::string::npos);
}

// 16 MiB of nothing in 16 KiB: a line that is too long takes no memory, packed or not.
TEST(LineStream, ADecompressionBombIsALongLine) {
  const std::string packed = gzip(std::string(std::size_t{16} << 20, 'x') + "\nline\n");
  Pipe pipe;
  std::thread sender([&] {
    pipe.send(packed);
    pipe.finish();
  });
  LineStream stream(pipe.ends[0], "pipe", 1000);
  std::vector<LineStream::Line> lines;
  ASSERT_TRUE(stream.next(10, lines));
  EXPECT_TRUE(lines[0].too_long);
  std::string last;
  do
    if (!lines.empty()) last = lines.back().text;
  while (stream.next(10, lines));
  EXPECT_EQ(last, "line");
  sender.join();
}

TEST(LineStream, AnEmptyStream) {
  Pipe pipe;
  LineStream stream(pipe.ends[0], "pipe", 100);
  pipe.send(" \n\n");
  pipe.finish();
  EXPECT_EQ(stream.peek(), 0);
  std::vector<LineStream::Line> lines;
  EXPECT_FALSE(stream.next(5, lines));
}

}  // namespace
}  // namespace lacuna
