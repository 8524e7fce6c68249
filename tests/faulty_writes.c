/* A disk that fails: preloaded, it lets one write in a process end in another way. FAULT is "ENOSPC", "EIO" or "short"; AT is
 * the number of the write that fails (and, but for "short", all behind it: a full disk stays full). Only files are
 * counted, not pipes or terminals. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static long count;

/* What becomes of a write of `bytes`: their number, fewer, or -1 with errno set. */
static ssize_t outcome(int fd, size_t bytes) {
  struct stat about;
  const char *fault = getenv("FAULT"), *at = getenv("AT");
  if (!fault || !at || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return (ssize_t)bytes;
  const long number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
  if (strcmp(fault, "short") == 0) return number == atol(at) && bytes > 1 ? (ssize_t)(bytes / 2) : (ssize_t)bytes;
  if (number < atol(at)) return (ssize_t)bytes;
  errno = strcmp(fault, "EIO") == 0 ? EIO : ENOSPC;
  return -1;
}

ssize_t write(int fd, const void *data, size_t bytes) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  const ssize_t left = outcome(fd, bytes);
  return left < 0 ? left : real(fd, data, (size_t)left);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t to) {
  static ssize_t (*real)(int, const void *, size_t, off_t);
  if (!real) real = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
  const ssize_t left = outcome(fd, bytes);
  return left < 0 ? left : real(fd, data, (size_t)left, to);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off_t to) { return pwrite(fd, data, bytes, to); }

int fsync(int fd) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  const char *fault = getenv("FAULT"), *at = getenv("AT");
  if (fault && at && strcmp(fault, "EIO") == 0 && __atomic_load_n(&count, __ATOMIC_RELAXED) >= atol(at)) {
    errno = EIO;
    return -1;
  }
  return real(fd);
}
