// The parser of TOML, compiled into the shared library for the same reason as format.cc. Not with its assertions, nor as
// assumptions for the compiler: not all of them hold ("[=]"), and the parser itself refuses what breaks them.
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
