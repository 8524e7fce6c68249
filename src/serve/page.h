// The page at /: paste or drop rows, see tags as bars and which view drove them. It connects to this server only.
#pragma once

#include <string>

namespace lacuna::serve {

const std::string& page();
const std::string& page_headers();  // what the page may do, for the browser

}  // namespace lacuna::serve
