// The description of the interface at /openapi.json (OpenAPI 3.1).
#pragma once

#include <string>

namespace lacuna::serve {

const std::string& openapi();

}  // namespace lacuna::serve
