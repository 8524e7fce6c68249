// Preloaded into the program: a machine whose clock is an hour ahead of its file server's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int code = real(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += 3600;
  return code;
}
