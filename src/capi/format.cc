// The parts of libfmt that the library uses, compiled into the shared one: its users need not have libfmt.
// What is not found here is taken from libfmt.so; tests/capi.cmake sees that nothing is.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);
}  // namespace detail
FMT_END_NAMESPACE
