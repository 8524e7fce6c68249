// The parser of TOML, compiled into the shared library for the same reason as format.cc.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
