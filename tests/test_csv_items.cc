#include "data/csv_items.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lacuna {
namespace {

std::vector<ViewShape> named() {
  return {{"blood", 2, {"glucose", "age"}, {}}, {"scan", 2, {"size", "age"}, {}}};
}
std::vector<ViewShape> unnamed() {
  return {{"blood", 2, {}, {}}, {"scan", 2, {}, {}}};
}

std::vector<float> values(const ItemBlock& block, std::size_t v) {
  if (!block.has(0, v)) return {};
  return {block.values(0, v).begin(), block.values(0, v).end()};
}
using Floats = std::vector<float>;

std::pair<Exit, std::string> refused(std::string_view header, const std::vector<ViewShape>& views,
                                     const CsvItemsOptions& options = {}) {
  try {
    CsvItems(header, views, options);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {Exit::ok, ""};
}

TEST(CsvItems, ColumnsAreMatchedByNameInAnyOrder) {
  ItemBlock block(named(), 1);
  const CsvItems table("blood:age,Sample ID,scan:age,size,glucose", named(),
                       {.separator = 0, .header = "auto", .id_column = "Sample ID"});
  EXPECT_TRUE(table.has_header() && table.by_name());
  table.parse("1,x7,2,3.5,4e1", block, 0);
  EXPECT_EQ(block.id(0), "x7");
  EXPECT_EQ(values(block, 0), (Floats{40, 1}));
  EXPECT_EQ(values(block, 1), (Floats{3.5f, 2}));
  table.parse("1,x8,,,4", block, 0);  // all of a view is empty: it is missing
  EXPECT_EQ(values(block, 1), Floats());
  EXPECT_EQ(values(block, 0), (Floats{4, 1}));
}

TEST(CsvItems, AWholeViewMayBeAbsent) {
  ItemBlock block(named(), 1);
  const CsvItems table("Sample_ID,glucose,blood:age", named(), {});
  table.parse("a,1,2", block, 0);
  EXPECT_EQ(block.id(0), "a");
  EXPECT_TRUE(block.has(0, 0) && !block.has(0, 1));
}

TEST(CsvItems, WhatDoesNotFitIsRefusedWithNames) {
  EXPECT_EQ(refused("id,glucose", named()).first, Exit::mismatch);
  EXPECT_NE(
      refused("id,glucose", named())
          .second.find("view 'blood' has 2 columns in the model, 1 of them are not in the first line: 'age'"),
      std::string::npos)
      << refused("id,glucose", named()).second;
  EXPECT_NE(refused("id,glucosse,blood:age", named()).second.find("'glucosse'; did you mean 'glucose'?"),
            std::string::npos);
  EXPECT_NE(refused("id,age,glucose", named()).second.find("write it as 'blood:age'"), std::string::npos);
  EXPECT_EQ(refused("id,glucose,glucose,blood:age", named()).first, Exit::data);
  EXPECT_NE(
      refused("id,a,b", unnamed()).second.find("3 columns of values, the model expects 4 (blood 2, scan 2)"),
      std::string::npos);
  EXPECT_EQ(refused("id,a,b", unnamed()).first, Exit::mismatch);
  EXPECT_EQ(refused("a,b", unnamed(), {.separator = 0, .header = "auto", .id_column = "c"}).first,
            Exit::usage);
}

TEST(CsvItems, WithoutNamesColumnsAreTakenInOrder) {
  ItemBlock block(unnamed(), 1);
  const CsvItems plain("1,2,3,4", unnamed(), {});
  EXPECT_FALSE(plain.has_header());
  plain.parse("1,2,3,4", block, 0);
  EXPECT_EQ(values(block, 1), (Floats{3, 4}));
  EXPECT_EQ(block.id(0), "");
  const CsvItems with_id("x1;1;2;3;4", unnamed(), {});
  EXPECT_FALSE(with_id.has_header());
  with_id.parse("x1;1;2;3;4", block, 0);
  EXPECT_EQ(block.id(0), "x1");
  const CsvItems headed("id\ta\tb\tc\td", unnamed(), {});
  EXPECT_TRUE(headed.has_header());
  EXPECT_EQ(headed.separator(), '\t');
  headed.parse("7\t\t\t3\t4", block, 0);
  EXPECT_TRUE(!block.has(0, 0) && block.has(0, 1));
  EXPECT_EQ(block.id(0), "7");
}

// As in files: a number may have a decimal comma where the comma separates nothing.
TEST(CsvItems, DecimalCommas) {
  const std::vector<ViewShape> views = {{"v", 2, {}, {}}};
  ItemBlock block(views, 1);
  for (const char separator : {';', '\t', ','}) {
    const auto line = [&](const char* a, const char* b) { return std::string(a) + separator + b; };
    const CsvItems table(line("1", "2"), views, {separator, "auto", ""});
    EXPECT_FALSE(table.has_header());
    if (separator == ',') {
      EXPECT_EQ(table.parse("1.5,2", block, 0), 0u);
      continue;
    }
    EXPECT_FALSE(CsvItems(line("1,5", "2"), views, {separator, "auto", ""}).has_header());
    EXPECT_EQ(table.parse(line("1,5", "-2,25e1"), block, 0), CsvItems::kComma);
    EXPECT_EQ(block.values(0, 0)[0], 1.5f);
    EXPECT_EQ(block.values(0, 0)[1], -22.5f);
    EXPECT_EQ(table.parse(line("1.5", "2"), block, 0), CsvItems::kPoint);
    EXPECT_EQ(table.parse(line("1.5", "2,5"), block, 0), CsvItems::kPoint | CsvItems::kComma);
    EXPECT_EQ(table.parse(line("1", "2"), block, 0), 0u);
    EXPECT_THROW(table.parse(line("1,2,3", "2"), block, 0), Error);
    EXPECT_THROW(table.parse(line("1,2.3", "2"), block, 0), Error);
  }
}

// As in files. Such words in the first line are names: y and t are columns of many tables.
TEST(CsvItems, YesAndNo) {
  const std::vector<ViewShape> views = {{"v", 2, {"t", "y"}, {}}};
  ItemBlock block(views, 1);
  const CsvItems table("t,y", views, {});
  EXPECT_TRUE(table.has_header());
  table.parse("true,No", block, 0);
  EXPECT_EQ(values(block, 0), (Floats{1, 0}));
  EXPECT_THROW(table.parse("maybe,1", block, 0), Error);
}

// R names the columns and not the ids.
TEST(CsvItems, AShortHeader) {
  const std::vector<ViewShape> views = {{"v", 2, {"a", "b"}, {}}};
  ItemBlock block(views, 1);
  CsvItems table("b,a", views, {});
  table.see_first_item("x1,1,2");
  table.parse("x7,1,2", block, 0);
  EXPECT_EQ(block.id(0), "x7");
  EXPECT_EQ(block.values(0, 0)[0], 2.f);
  CsvItems whole("b,a", views, {}), ends("b,a", views, {});
  whole.see_first_item("1,2");
  whole.parse("1,2", block, 0);
  EXPECT_EQ(block.id(0), "");
  ends.see_first_item("1,2,");  // a separator at the end of each line is something else
  EXPECT_THROW(ends.parse("1,2,", block, 0), Error);
}

// The same names as in files.
TEST(CsvItems, NamesOfIds) {
  const std::vector<ViewShape> views = {{"v", 2, {"a", "b"}, {}}};
  ItemBlock block(views, 1);
  for (const char* name : {"id", "", "Sample_ID", "patient", "barcode", "Unnamed: 0", "rownames"}) {
    const CsvItems table(std::string(name) + ",a,b", views, {});
    table.parse("x,1,2", block, 0);
    EXPECT_EQ(block.id(0), "x") << name;
  }
}

// As in files: the ids stand last, or pandas has put its index before them.
TEST(CsvItems, IdsWhereverTheyStand) {
  const std::vector<ViewShape> views = named();
  for (const auto& [header, line] : {std::pair{"glucose,blood:age,id", "4,5,x1"},
                                     {",id,glucose,blood:age", "0,x1,4,5"},
                                     {"Unnamed: 0,sample_id,glucose,blood:age", "7,x1,4,5"}}) {
    ItemBlock block(views, 1);
    const CsvItems table(header, views, {});
    table.parse(line, block, 0);
    EXPECT_EQ(block.id(0), "x1") << header;
    EXPECT_TRUE(block.has_any(0)) << header;
  }
}

TEST(CsvItems, TheOrderThatIsTakenForGrantedIsTold) {
  std::string sizes;
  for (const auto& view : unnamed()) sizes += fmt::format("{}{} {}", sizes.empty() ? "" : ", ", view.name, view.columns);
  EXPECT_EQ(CsvItems("1,2,3,4", unnamed(), {}).told(),
            "no column of ids, columns matched by position, in the model's order (" + sizes + ")");
}

TEST(CsvItems, BadLines) {
  auto views = unnamed();
  ItemBlock block(views, 1);
  const CsvItems table("id,a,b,c,d", views, {});
  const auto message = [&](std::string_view line) -> std::string {
    try {
      table.parse(line, block, 0);
    } catch (const Error& error) {
      EXPECT_FALSE(block.has_any(0));
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("x,1,2,3").find("4 cells, the first line has 5"), std::string::npos);
  EXPECT_NE(message("x,1,2,3,4,5").find("6 cells, the first line has 5"), std::string::npos);
  EXPECT_NE(message("x,1,2,3,oops").find("column 'd': 'oops'"), std::string::npos);
  EXPECT_NE(message("x,1,,3,4").find("1 of 2 cells are empty"), std::string::npos);
  EXPECT_NE(message("x,inf,1,3,4").find("'inf'"), std::string::npos);
  EXPECT_NE(message("\"x,1,2,3,4").find("no end"), std::string::npos);
  EXPECT_EQ(message("\"x, \"\"y\"\"\",1,2,3,4"), "");
  EXPECT_EQ(block.id(0), "x, \"y\"");
}

}  // namespace
}  // namespace lacuna
