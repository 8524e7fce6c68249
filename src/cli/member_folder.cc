#include "cli/member_folder.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/leftovers.h"
#include "cli/learning.h"

namespace lacuna::cli {

MemberFolder::MemberFolder(std::string folder, const nlohmann::json& fingerprint)
    : folder_(std::move(folder)), claims_(folder_ + "/claims", [this](const std::string& id) {
        return std::filesystem::exists(file(id));
      }) {
  const std::string path = folder_ + "/training.json";
  if (!std::filesystem::exists(path)) {
    write_text(path, fingerprint.dump(1) + "\n");
  } else {
    const auto was = nlohmann::json::parse(read_text(path), nullptr, false);
    if (was != fingerprint)
      fail(Exit::usage,
           "{}: contains members of another training: {}; use the same settings and data, or remove the "
           "folder",
           folder_, differences(was.is_object() ? was : nlohmann::json::object(), fingerprint));
  }
  claims_.sweep();
  remove_old_leftovers(folder_);
}

std::string MemberFolder::id(std::size_t member) {
  return fmt::format("member{}", member + 1);
}

bool MemberFolder::done(std::size_t member) const {
  return std::filesystem::exists(file(id(member)));
}

bool MemberFolder::take(std::size_t member) {
  auto claim = claims_.take(id(member));
  if (claim == nullptr) return false;
  taken_[member] = std::move(claim);
  return true;
}

void MemberFolder::keep(std::size_t member, const Tensors& state) {
  state.write(file(id(member)));
  taken_.erase(member);
}

Tensors MemberFolder::read(std::size_t member) const {
  return Tensors::read(file(id(member)));
}

void MemberFolder::wait() {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

}  // namespace lacuna::cli
