// A driver without a GPU, for tests: libcuda.so.1 that answers as FAKE_CUDA says (none, old, broken, weak, two).
#include <stdlib.h>
#include <string.h>

static int is(const char* what) {
  const char* given = getenv("FAKE_CUDA");
  return given != NULL && strcmp(given, what) == 0;
}

int cuInit(unsigned flags) {
  (void)flags;
  return is("none") ? 100 : is("broken") ? 999 : 0;
}
int cuDriverGetVersion(int* version) {
  *version = is("old") ? 12020 : 13000;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}
int cuDeviceGet(int* device, int number) {
  *device = number;
  return 0;
}
int cuDeviceGetName(char* name, int size, int device) {
  (void)device;
  strncpy(name, "Fake GPU", (size_t)size);
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = (size_t)8 << 30;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  *value = attribute == 75 ? (is("weak") ? 7 : 9) : 0;
  return 0;
}
