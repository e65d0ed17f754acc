// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/toolkit/wgmma_text.hpp"

namespace tsr::cuda {
namespace {

const char* type_text(DType t) {
  switch (t) {
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f32:
      return "tf32";
    case DType::e4m3:
      return "e4m3";
    case DType::e5m2:
      return "e5m2";
    case DType::i8:
      return "s8";
    default:
      return "u8";
  }
}

const char* sum_text(DType t) { return t == DType::f32 ? "f32" : t == DType::f16 ? "f16" : "s32"; }

// "%3, %4, %5"
std::string numbered(int first, int count) {
  std::string s;
  for (int i = 0; i < count; ++i) s += cat(i ? ", %" : "%", first + i);
  return s;
}

}  // namespace

Reason check_wgmma(const WgmmaShape& s) {
  auto is_small = [](DType t) { return t == DType::e4m3 || t == DType::e5m2; };
  auto is_whole = [](DType t) { return t == DType::i8 || t == DType::u8; };
  auto is_wide = [](DType t) { return t == DType::f16 || t == DType::bf16; };
  bool whole = is_whole(s.a), mixes = (is_small(s.a) && is_small(s.b)) || (whole && is_whole(s.b));
  if (!mixes && (s.a != s.b || (!is_wide(s.a) && s.a != DType::f32)))
    return Reason::no("tensor cores do not multiply ", info(s.a).name, " with ", info(s.b).name);
  bool half = s.sum == DType::f16 && (s.a == DType::f16 || is_small(s.a));
  if (whole ? s.sum != DType::i32 : s.sum != DType::f32 && !half)
    return Reason::no("products of ", info(s.a).name, " have no sums of ", info(s.sum).name);
  if (s.columns < 8 || s.columns > 256 || s.columns % 8 != 0 || (whole && s.columns > 32 && s.columns % 16 != 0))
    return Reason::no("a product of ", s.columns, " columns of ", info(s.a).name);
  if ((s.a_across || s.b_across) && !is_wide(s.a))
    return Reason::no("operands of ", info(s.a).name, " must lie along the inner dimension");
  if (s.a_across && s.a_in_registers) return Reason::no("an operand in registers lies along the inner dimension");
  return Reason::yes();
}

int wgmma_depth(const WgmmaShape& s) { return 256 / info(s.a).bits; }

std::string wgmma_text(const std::string& name, const WgmmaShape& s) {
  if (Reason why = check_wgmma(s); !why) fail(Status::bad_parameter, why.text());
  bool half = s.sum == DType::f16, whole = s.sum == DType::i32, narrow = info(s.a).bits == 16;
  int registers = half ? s.columns / 4 : s.columns / 2, a_operands = s.a_in_registers ? 4 : 1;
  const char* sum_type = half ? "u32" : whole ? "i32" : "float";
  std::string a_type = s.a_in_registers ? "const u32 (&a)[4]" : "u64 a";
  // The predicate is the last operand; then come factors of the operands and, for 16 bits, their directions.
  std::string tail = whole ? "" : ", 1, 1";
  if (narrow) tail += cat(s.a_in_registers ? std::string() : cat(", ", s.a_across ? 1 : 0), ", ", s.b_across ? 1 : 0);
  std::string outputs, inputs;
  for (int i = 0; i < registers; ++i) outputs += cat(i ? ", " : "", "\"+", half || whole ? "r" : "f", "\"(d[", i, "])");
  for (int i = 0; i < a_operands; ++i)
    inputs += s.a_in_registers ? cat(i ? ", " : "", "\"r\"(a[", i, "])") : std::string("\"l\"(a)");
  std::string a_text = numbered(registers, a_operands);
  if (s.a_in_registers) a_text = "{" + a_text + "}";
  return cat(
      "namespace tsr::dev {\nstruct ", name, " {\n  static constexpr int kColumns = ", s.columns,
      ", kDepth = ", wgmma_depth(s), ";\n  using Sum = ", sum_type, ";\n  using Sums = Sum[", registers,
      "];\n  static void run(Sums& d, ", a_type, ", u64 b, bool add, Here here = {}) {\n#if defined(TSR_EMULATED)\n",
      "    using P = tsr_emulated::Product;\n    tsr_emulated::world->wgmma({d, kColumns, kDepth, P::", type_text(s.a),
      ", P::", type_text(s.b), ", ", half ? "true" : "false", ", ", s.a_in_registers ? "0, b, a" : "a, b, nullptr",
      ", ", s.a_across ? "true" : "false", ", ", s.b_across ? "true" : "false", ", add, here});\n#else\n",
      "    asm volatile(\n        \"{\\n\\t.reg .pred p;\\n\\tsetp.ne.b32 p, %", registers + a_operands + 1,
      ", 0;\\n\\twgmma.mma_async.sync.aligned.m64n", s.columns, "k", wgmma_depth(s), ".", sum_text(s.sum), ".",
      type_text(s.a), ".", type_text(s.b), " {", numbered(0, registers), "}, ", a_text, ", %", registers + a_operands,
      ", p", tail, ";\\n\\t}\"\n        : ", outputs, "\n        : ", inputs,
      ", \"l\"(b), \"r\"(int(add)));\n#endif\n  }\n};\n}\n");
}

}  // namespace tsr::cuda
