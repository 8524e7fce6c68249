// lacuna doctor as a process: what it chose, why, and how it refuses.
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "ops/machine.h"

namespace lacuna {
namespace {

struct Outcome {
  int code = -1;
  std::string text;
};

Outcome run(const std::string& environment, const std::string& arguments) {
  const std::string command = environment + " '" LACUNA_PROGRAM "' doctor " + arguments + " 2>&1";
  Outcome outcome;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  char part[256];
  while (std::fgets(part, sizeof part, pipe) != nullptr) outcome.text += part;
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

TEST(Doctor, EveryAvailableFormCanBeForced) {
  for (const Isa candidate : available_isas()) {
    const Outcome outcome = run(std::string("LACUNA_ISA=") + isa_name(candidate), "--json --threads 1");
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    const auto report = nlohmann::json::parse(outcome.text);
    EXPECT_EQ(report["schema"], "lacuna.doctor.1");
    EXPECT_EQ(report["products"]["chosen"], isa_name(candidate));
    EXPECT_EQ(report["threads"], 1);
    EXPECT_GT(report["measured"]["bandwidth_bytes_per_second"].get<double>(), 1e8);
    EXPECT_GT(report["measured"]["f32_product_flops"].get<double>(), 1e8);
  }
}

TEST(Doctor, ChoosesTheFastestAndSaysWhy) {
  const Outcome outcome = run("LACUNA_ISA=", "--json --threads 1");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto report = nlohmann::json::parse(outcome.text);
  EXPECT_EQ(report["products"]["chosen"], isa_name(fastest_isa()));
  EXPECT_NE(report["products"]["reason"].get<std::string>().find("fastest"), std::string::npos);
}

TEST(Doctor, RefusesWhatIsNotThere) {
  Outcome outcome = run("LACUNA_ISA=mmx", "");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.text.find("LACUNA_ISA=mmx"), std::string::npos) << outcome.text;
  if (has_isa(Isa::amx)) return;
  outcome = run("LACUNA_ISA=amx", "");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.text.find("cannot run 'amx'"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace lacuna
