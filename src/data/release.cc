#include "data/release.h"

#include "base/mapping.h"

namespace lacuna {

void release_rows(const View& view, std::size_t first, std::size_t count) {
  if (count == 0) return;
  if (const auto* table = std::get_if<Table<float>>(&view.features)) {
    const auto rows = table->view().slice(first, count);
    release_mapped(std::as_bytes(std::span(rows.data, (rows.rows - 1) * rows.stride + rows.cols)));
    return;
  }
  const Csr& s = std::get<Csr>(view.features);
  const std::uint64_t begin = s.start(0, first), end = s.start(0, first + count);
  release_mapped(std::as_bytes(s.index.row(0).subspan(begin, end - begin)));
  release_mapped(std::as_bytes(s.value.row(0).subspan(begin, end - begin)));
}

}  // namespace lacuna
