#include "base/ranks.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/tensors.h"

namespace lacuna {
namespace {

class OneRank final : public Ranks {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

 protected:
  void transfer(std::span<const Part>) const override {}
};

// FNV-1a.
std::uint64_t hash(std::span<const std::byte> bytes, std::uint64_t seed = 14695981039346656037u) {
  for (const std::byte b : bytes) seed = (seed ^ static_cast<std::uint64_t>(b)) * 1099511628211u;
  return seed;
}

// What the others need to know of a rank's tensors before they make room for them.
std::string list_of(const Tensors& tensors) {
  nlohmann::json list = nlohmann::json::object();
  for (const auto& [name, tensor] : tensors.all())
    list[name] = {{"type", tensor.type}, {"shape", tensor.shape}};
  return list.dump();
}

}  // namespace

Ranks& one_rank() {
  static OneRank rank;
  return rank;
}

std::vector<std::string> all_gather(const Ranks& ranks, const std::string& own) {
  const auto sizes = all_gather(ranks, own.size());
  std::vector<std::string> texts;
  std::vector<Ranks::Part> parts;
  for (const std::size_t size : sizes) texts.emplace_back(size, '\0');
  texts[static_cast<std::size_t>(ranks.rank())] = own;
  for (std::size_t r = 0; r < texts.size(); ++r)
    parts.push_back({texts[r].data(), texts[r].size(), static_cast<int>(r)});
  ranks.exchange(parts);
  return texts;
}

int threads_beside(const Ranks& ranks) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  const std::uint64_t own = hash(std::as_bytes(std::span(&set, 1)), hash(std::as_bytes(std::span(host))));
  const auto all = all_gather(ranks, own);
  const auto sharers = std::ranges::count(all, own);
  return std::max(1, CPU_COUNT(&set) / static_cast<int>(sharers));
}

void gather(const Ranks& ranks, Wanted wanted, Tensors& tensors) {
  if (ranks.alone()) return;
  struct Source {
    int owner;
    std::string type;
    std::vector<std::uint64_t> shape;
  };
  std::map<std::string, Source> sources;
  const auto lists = all_gather(ranks, list_of(tensors));
  for (std::size_t r = 0; r < lists.size(); ++r) {
    const auto list = nlohmann::json::parse(lists[r]);
    for (const auto& [name, entry] : list.items())
      sources.try_emplace(name, Source{static_cast<int>(r), entry.at("type").get<std::string>(),
                                       entry.at("shape").get<std::vector<std::uint64_t>>()});
  }
  // One after the other: beside the result there is room for one more tensor only.
  for (const auto& [name, source] : sources) {
    const int reader = wanted == Wanted::by_leader ? 0 : Ranks::kEveryone;
    if (source.owner == reader) continue;
    Tensor tensor{source.type, source.shape, {}, 0, nullptr};
    auto bytes = std::make_shared<std::vector<std::byte>>();
    const bool owns = source.owner == ranks.rank(), reads = reader == Ranks::kEveryone || ranks.leads();
    if (owns) *bytes = packed(tensors.at(name));
    if (!owns && reads) bytes->resize(size_of(tensor));
    const Ranks::Part part{bytes->data(), size_of(tensor), source.owner, reader};
    ranks.exchange({&part, 1});
    if (owns || !reads) continue;
    tensor.bytes = *bytes;
    tensor.owner = bytes;
    tensors.put(name, std::move(tensor));
  }
}

}  // namespace lacuna
