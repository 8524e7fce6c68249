// Threads with a fixed split: [0, n) is cut into chunks of `grain` independently of the number of threads, and one
// call processes each chunk. Work that writes only to its own chunk gives the same bits for any number of threads.
// Sums go through ordered_sum, which adds the results of the chunks in order.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

namespace lacuna {

// A process may fork after using threads: the child gets workers of its own.
void set_threads(int count);  // 0: as many as the machine has; call it before work starts, not from inside it
int threads();

// A reference to a callable; it must outlive the call. Unlike std::function it never allocates.
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& f)  // NOLINT: meant to convert
      : object_(const_cast<void*>(static_cast<const void*>(&f))), call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(static_cast<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, static_cast<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

// Calls body(begin, end) for each chunk, in any thread, with the caller's floating-point mode (rounding, subnormal
// numbers). Inside a chunk it runs in the calling thread. An exception thrown by a chunk is rethrown here when all
// chunks are done.
void parallel_for(std::size_t n, std::size_t grain, FunctionRef<void(std::size_t, std::size_t)> body);

// Sum over the chunks of body(begin, end), added in the order of the chunks.
template <class F>
double ordered_sum(std::size_t n, std::size_t grain, F&& body) {
  std::vector<double> parts(n == 0 ? 0 : (n - 1) / grain + 1);
  parallel_for(n, grain, [&](std::size_t begin, std::size_t end) { parts[begin / grain] = body(begin, end); });
  double sum = 0;
  for (double part : parts) sum += part;
  return sum;
}

}  // namespace lacuna
