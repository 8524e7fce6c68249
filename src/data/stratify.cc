#include "data/stratify.h"

#include <algorithm>

namespace lacuna {
namespace {

constexpr std::size_t kParts = 3;
constexpr std::uint8_t kNowhere = kParts;

class Stratification {
 public:
  Stratification(const Dataset& data, const std::array<std::size_t, kParts>& sizes,
                 const std::vector<std::uint32_t>& order)
      : data_(data),
        order_(order),
        room_(sizes),
        part_(data.rows, kNowhere),
        waiting_(data.label_count(), 0) {
    for (std::size_t i = 0; i < data.rows; ++i) count_positives(i, +1);
    for (std::size_t p = 0; p < kParts; ++p) {
      const double share = static_cast<double>(sizes[p]) / static_cast<double>(data.rows);
      for (const std::size_t positives : waiting_)
        wanted_[p].push_back(share * static_cast<double>(positives));
    }
  }

  std::vector<std::uint32_t> run() {
    for (std::size_t label = rarest(); label < waiting_.size(); label = rarest())
      for (const auto i : order_)
        if (part_[i] == kNowhere && data_.labels(i, label) == 1) give(i, neediest(label));
    for (const auto i : order_)  // rows without a positive fill what is left
      if (part_[i] == kNowhere) give(i, roomiest());
    std::vector<std::uint32_t> result;
    result.reserve(order_.size());
    for (std::size_t p = 0; p < kParts; ++p)
      std::ranges::copy_if(order_, std::back_inserter(result),
                           [&](std::uint32_t i) { return part_[i] == p; });
    return result;
  }

 private:
  void count_positives(std::size_t i, int by) {
    for (std::size_t j = 0; j < waiting_.size(); ++j)
      if (data_.labels(i, j) == 1) waiting_[j] += static_cast<std::size_t>(by);
  }

  // The label with the fewest positives that have no part yet; past the end if there is none.
  std::size_t rarest() const {
    std::size_t best = waiting_.size();
    for (std::size_t j = 0; j < waiting_.size(); ++j)
      if (waiting_[j] > 0 && (best == waiting_.size() || waiting_[j] < waiting_[best])) best = j;
    return best;
  }

  // The part with room that lacks most positives of the label; among equals the one with most room.
  std::size_t neediest(std::size_t label) const {
    std::size_t best = roomiest();
    for (std::size_t p = 0; p < kParts; ++p)
      if (room_[p] > 0 && wanted_[p][label] > wanted_[best][label]) best = p;
    return best;
  }
  std::size_t roomiest() const {
    return static_cast<std::size_t>(std::ranges::max_element(room_) - room_.begin());
  }

  void give(std::uint32_t i, std::size_t part) {
    part_[i] = static_cast<std::uint8_t>(part);
    --room_[part];
    count_positives(i, -1);
    for (std::size_t j = 0; j < waiting_.size(); ++j)
      if (data_.labels(i, j) == 1) wanted_[part][j] -= 1;
  }

  const Dataset& data_;
  const std::vector<std::uint32_t>& order_;
  std::array<std::size_t, kParts> room_;              // rows that a part can still take
  std::vector<std::uint8_t> part_;                    // of each row
  std::vector<std::size_t> waiting_;                  // positives of each label that have no part yet
  std::array<std::vector<double>, kParts> wanted_{};  // positives of each label that a part still lacks
};

}  // namespace

std::vector<std::uint32_t> stratified_order(const Dataset& data, const std::array<std::size_t, 3>& sizes,
                                            const std::vector<std::uint32_t>& order) {
  return Stratification(data, sizes, order).run();
}

}  // namespace lacuna
