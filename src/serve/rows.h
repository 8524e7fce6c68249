// The rows of a request, and the views that a model has for them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna::serve {

// The model that a request is for: its name and its views.
struct ModelShape {
  std::string name;
  struct View {
    std::string name;
    std::size_t columns = 0;
  };
  std::vector<View> views;
  std::size_t view_index(std::string_view view) const {  // views.size() if there is none
    std::size_t v = 0;
    while (v < views.size() && views[v].name != view) ++v;
    return v;
  }
};

// The rows of one request. The memory that `features` points into belongs to the request.
struct Rows {
  std::size_t count = 0;
  std::vector<const float*> features;  // per view of the model (count, columns); null: no row has it
  std::vector<std::uint8_t> present;   // (count, views) flat
};

}  // namespace lacuna::serve
