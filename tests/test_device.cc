// Which device is chosen, and what is said where a GPU is asked for that cannot be used: with a driver that is not
// there, and with one that only pretends (tests/fake_cuda.c).
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/error.h"
#include "ops/device.h"

namespace lacuna {
namespace {

struct Outcome {
  int code = -1;
  std::string text;
};

// lacuna predict with a device, under a driver that answers in this way; it refuses before it reads anything else.
Outcome ask(const std::string& fake, const std::string& device) {
  const std::string command = "FAKE_CUDA=" + fake +
                              " LACUNA_CUDA_LIBRARY=/nonexistent/engine.so LD_LIBRARY_PATH='" +
                              LACUNA_FAKE_CUDA + "' '" LACUNA_PROGRAM "' train nothing.csv --device " +
                              device + " --out x.safetensors 2>&1";
  Outcome outcome;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  char part[256];
  while (std::fgets(part, sizeof part, pipe) != nullptr) outcome.text += part;
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

void expect_says(const Outcome& outcome, const std::string& words) {
  EXPECT_EQ(outcome.code, static_cast<int>(Exit::usage)) << outcome.text;
  EXPECT_NE(outcome.text.find(words), std::string::npos) << outcome.text;
}

TEST(Device, NamesAreParsed) {
  EXPECT_FALSE(parse_device("cpu").cuda);
  EXPECT_EQ(device_name(parse_device("cpu")), "cpu");
  EXPECT_EQ(parse_device("auto").cuda, cuda_absence().empty());
  for (const char* wrong : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1e9", ""})
    EXPECT_THROW(parse_device(wrong), Error) << wrong;
}

TEST(Device, FaultsAreNamed) {
  expect_says(ask("none", "cuda"), "finds no GPU");
  expect_says(ask("broken", "cuda"), "error 999");
  expect_says(ask("old", "cuda"), "supports CUDA 12.2, 13.0 is needed");
  expect_says(ask("weak", "cuda"), "compute capability 7.0, 8.0 is needed");
  expect_says(ask("old", "warp"), "takes auto, cpu, cuda or cuda:N, not 'warp'");
}

// A GPU that cannot be used is no reason to stop where none was asked for.
TEST(Device, AutoFallsBackToTheCpu) {
  for (const char* fake : {"none", "old", "broken", "weak"}) {
    const Outcome outcome = ask(fake, "auto");
    EXPECT_EQ(outcome.text.find("GPU"), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("nothing.csv"), std::string::npos)
        << outcome.text;  // the data is what is missing
  }
}

}  // namespace
}  // namespace lacuna
