// The members of an ensemble that several processes train together (`lacuna train --share`):
//   MODEL.members/training.json           everything that determines the result: another training is refused
//   MODEL.members/memberK.safetensors     a finished member
//   MODEL.members/claims/                 which process works on which member (experiments/claims.h)
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/claims.h"
#include "methods/member_share.h"

namespace lacuna::cli {

class MemberFolder final : public MemberShare {
 public:
  MemberFolder(std::string folder, const nlohmann::json& fingerprint);

  bool done(std::size_t member) const override;
  bool take(std::size_t member) override;
  void keep(std::size_t member, const Tensors& state) override;
  Tensors read(std::size_t member) const override;
  void wait() override;
  const std::string& path() const { return folder_; }

 private:
  std::string file(const std::string& id) const { return folder_ + "/" + id + ".safetensors"; }
  static std::string id(std::size_t member);

  std::string folder_;
  Claims claims_;
  std::map<std::size_t, std::unique_ptr<Claim>> taken_;
};

}  // namespace lacuna::cli
