#include "ops/machine.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace lacuna {
namespace {

struct CpuId {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuId cpuid(unsigned leaf, unsigned subleaf) {
  CpuId id;
  if (__get_cpuid_count(leaf, subleaf, &id.eax, &id.ebx, &id.ecx, &id.edx) == 0) return {};
  return id;
}

bool bit(unsigned word, int position) {
  return (word >> position & 1) != 0;
}

// Which register states the operating system saves for us (XCR0).
unsigned long long saved_states() {
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<unsigned long long>(high) << 32 | low;
}

// Linux gives a process the tile registers only when it asks.
bool ask_for_tiles() {
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

std::string text_of(std::initializer_list<unsigned> words) {
  std::string text;
  for (unsigned word : words) {
    char part[4];
    std::memcpy(part, &word, 4);
    for (char c : part)
      if (c != '\0') text += c;
  }
  return std::string(trim(text));
}

CpuFeatures detect() {
  CpuFeatures f;
  const CpuId zero = cpuid(0, 0), one = cpuid(1, 0), seven = cpuid(7, 0), more = cpuid(7, 1);
  f.vendor = text_of({zero.ebx, zero.edx, zero.ecx});
  if (cpuid(0x80000000, 0).eax >= 0x80000004) {
    const CpuId a = cpuid(0x80000002, 0), b = cpuid(0x80000003, 0), c = cpuid(0x80000004, 0);
    f.model = text_of({a.eax, a.ebx, a.ecx, a.edx, b.eax, b.ebx, b.ecx, b.edx, c.eax, c.ebx, c.ecx, c.edx});
  }
  if (!bit(one.ecx, 27)) return f;  // no xgetbv: the operating system saves no wide registers
  const auto states = saved_states();
  const bool ymm = (states & 0x6) == 0x6, zmm = (states & 0xe6) == 0xe6,
             tiles = (states & 0x60000) == 0x60000;
  f.avx2 = ymm && bit(seven.ebx, 5) && bit(one.ecx, 12);
  f.avx512 =
      f.avx2 && zmm && bit(seven.ebx, 16) && bit(seven.ebx, 17) && bit(seven.ebx, 30) && bit(seven.ebx, 31);
  f.avx512_bf16 = f.avx512 && bit(more.eax, 5);
  f.amx_bf16 = f.avx512_bf16 && bit(seven.edx, 22) && bit(seven.edx, 24);
  f.amx_granted = f.amx_bf16 && tiles && ask_for_tiles();
#ifdef LACUNA_EMULATE_TILES
  f.amx_emulated = f.avx512_bf16;
#endif
  return f;
}

constexpr std::array kIsas = {Isa::plain, Isa::avx2, Isa::avx512, Isa::bf16, Isa::amx};
constexpr std::array kNames = {"plain", "avx2", "avx512", "bf16", "amx"};

struct Choice {
  Isa isa = Isa::plain;
  std::string reason;
};

[[noreturn]] void refuse(const std::string& where, Isa isa) {
  const char* best = isa_name(fastest_isa());
  fail(Exit::usage, "{}: this CPU ({}) cannot run '{}'; the fastest it can is '{}'", where,
       cpu_features().model, isa_name(isa), best);
}

Choice first_choice() {
  const auto& f = cpu_features();
  const Isa best = fastest_isa();
  if (const char* wanted = std::getenv("LACUNA_ISA"); wanted != nullptr && *wanted != '\0') {
    const auto parsed = parse_isa(wanted);
    if (!parsed) fail(Exit::usage, "LACUNA_ISA={}: expected plain, avx2, avx512, bf16 or amx", wanted);
    if (!has_isa(*parsed)) refuse(fmt::format("LACUNA_ISA={}", wanted), *parsed);
    return {*parsed, fmt::format("LACUNA_ISA={} asks for it", wanted)};
  }
  const char* missing = best == Isa::amx      ? ""
                        : f.amx_bf16          ? "; the operating system refuses AMX tiles"
                        : best == Isa::bf16   ? "; the CPU has no AMX"
                        : best == Isa::avx512 ? "; the CPU has neither AMX nor AVX512-BF16"
                        : best == Isa::avx2   ? "; the CPU has no AVX-512"
                                              : "; the CPU has no AVX2 with FMA";
  return {best, fmt::format("the fastest this machine can run{}", missing)};
}

Choice& choice() {
  static Choice chosen = first_choice();
  return chosen;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

bool has_isa(Isa isa) {
  const auto& f = cpu_features();
  switch (isa) {
    case Isa::plain:
      return true;
    case Isa::avx2:
      return f.avx2;
    case Isa::avx512:
      return f.avx512;
    case Isa::bf16:
      return f.avx512_bf16;
    case Isa::amx:
      return f.amx_granted || f.amx_emulated;
  }
  return false;
}

std::vector<Isa> available_isas() {
  std::vector<Isa> available;
  for (Isa candidate : kIsas)
    if (has_isa(candidate)) available.push_back(candidate);
  return available;
}

Isa fastest_isa() {
  return cpu_features().amx_emulated ? Isa::bf16 : available_isas().back();
}

const char* isa_name(Isa isa) {
  return kNames[static_cast<std::size_t>(isa)];
}

std::optional<Isa> parse_isa(const std::string& name) {
  for (Isa candidate : kIsas)
    if (name == isa_name(candidate)) return candidate;
  return std::nullopt;
}

Isa isa() {
  return choice().isa;
}
std::string isa_reason() {
  return choice().reason;
}

void choose_isa(Isa isa) {
  if (!has_isa(isa)) refuse("choosing the instruction set", isa);
  choice() = {isa, "chosen by the program"};
}

}  // namespace lacuna
