// The instruction sets of this CPU, and the one that the products use. Detected once; LACUNA_ISA or choose_isa()
// override it, so that tests and users can force a slower one.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lacuna {

// Instruction sets of the products, slowest first; each one requires those before it.
enum class Isa { plain, avx2, avx512, bf16, amx };

struct CpuFeatures {
  std::string vendor, model;
  bool avx2 = false;         // with FMA
  bool avx512 = false;       // F, BW, DQ, VL
  bool avx512_bf16 = false;  // vdpbf16ps
  bool amx_bf16 = false;     // the CPU has tiles
  bool amx_granted = false;  // the operating system lets this process use them
  bool amx_emulated = false; // in a build for tests (ops/tiles.h); used when asked for
};

const CpuFeatures& cpu_features();
bool has_isa(Isa isa);             // this CPU and operating system can run it
std::vector<Isa> available_isas(); // all that can run here, slowest first
Isa fastest_isa();                 // the last of them that is not emulated
const char* isa_name(Isa isa);
std::optional<Isa> parse_isa(const std::string& name);

Isa isa();                         // the one in use
std::string isa_reason();          // why it is in use: one sentence
void choose_isa(Isa isa);          // from now on; Exit::usage if this machine cannot run it. Not during a product.

// For code that is compiled for three widths of vectors: the widest one that the chosen instruction set allows.
template <class T>
T by_width(T plain, T avx2, T avx512) {
  return isa() >= Isa::avx512 ? avx512 : isa() == Isa::avx2 ? avx2 : plain;
}

}  // namespace lacuna
