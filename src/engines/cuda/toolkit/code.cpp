// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/toolkit/code.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engines/cuda/toolkit/apply_text.hpp"
#include "engines/cuda/toolkit/passes.hpp"
#include "engines/cuda/toolkit/tensors.hpp"

namespace tsr::cuda {
namespace {

using tessera::ReduceMode;

const char* op_name(ReduceMode m) {
  switch (m) {
    case ReduceMode::mul:
      return "Mul";
    case ReduceMode::min:
      return "Min";
    case ReduceMode::max:
      return "Max";
    default:
      return "Add";
  }
}

class Printer {
 public:
  Printer(const Expr& e, const Graph& g, const Layout& l, bool keep, const std::string& args, const std::string& name)
      : e_(e), g_(g), l_(l), keep_(keep && !l.columns), p_(e, g, l, keep_), args_(args), name_(name) {}

  Code run() {
    if (l_.columns) lane_ = "[i]";
    name_partials();
    std::string loads = print_loads(&Printer::is_early, &loaded_), late = print_loads(&Printer::is_late, &late_loaded_),
                fixed = print_loads(&Printer::is_fixed), moving = print_loads(&Printer::is_moving),
                before = print_rows(-1), accumulate, rows, starts, joins, shuffles;
    for (int s = 0; s < p_.stages; ++s) {
      accumulate += cat("    if constexpr (S == ", s, ") {\n", print_elements(s), "    }\n");
      rows += cat("    if constexpr (S == ", s, ") {\n", print_rows(s), "    }\n");
      starts += print_partials(s, "p.#[i].start = OP::identity<T>();");
      joins += print_partials(s, "p.#[i] = OP::join(p.#[i], q.#[i]);");
      shuffles += print_partials(s, "q.#[i] = __shfl_xor_sync(0xffffffffu, p.#[i], bits);");
    }
    std::string stores = print_elements(p_.stages), row_stores = print_row_stores();
    std::string sampled, steps, bytes;
    int estimates = 0;
    for (const OperandPlan& o : l_.operands) {
      steps += o.access == OperandPlan::vector ? "1, " : o.access == OperandPlan::same ? "0, " : "-1, ";
      bytes += cat(o.tensor == kNone || o.columns ? 0 : info(o.type).bits / 8, ", ");
    }
    for (int stage = 0; stage < p_.stages; ++stage) {
      sampled += samples(stage) ? "true, " : "false, ";
      estimates += samples(stage);
    }
    std::string args = args_;
    if (args.empty())
      args = cat("FusedArgs<", l_.operands.size(), ", ", numbers_.size(), ", ", l_.outer.size(), ", ", l_.inner.size(),
                 ">");
    std::string t =
        cat("namespace tsr::dev {\ntemplate <int V>\nstruct ", name_, " {\n  using Index = ", l_.wide ? "i64" : "i32",
            ";\n  using Args = ", args, ";\n  static constexpr int kOperands = ", l_.operands.size(),
            ", kOuter = ", l_.outer.size(), ", kInner = ", l_.inner.size(), ", kStages = ", p_.stages,
            ", kStagedBytes = ", staged_at(static_cast<int>(l_.operands.size())), " * V, W = ", l_.columns ? "V" : "1",
            ", kLanes = ", std::max<int64_t>(1, l_.block),
            " / V;\n  static constexpr bool kSharesBytes = ", shares_bytes() ? "true" : "false",
            ", kAcross = ", sum_fields().empty() ? "false" : "true", ", kSamples[] = {", sampled,
            "false};\n  static constexpr int kFixedWords = ", loaded_words(&Printer::is_fixed),
            ", kMovingWords = ", loaded_words(&Printer::is_moving), ";\n", print_each("step_of", steps),
            print_each("bytes_of", bytes));
    t += "  struct Loaded {\n" + loaded_ + "  };\n  struct Late {\n" + late_loaded_ + "  };\n  struct Kept {\n" +
         kept_fields() + "  };\n";
    t += "  struct Rows {\n" + row_fields() + "  };\n  struct Partial {\n" + partial_fields() +
         "  };\n  struct Sums {\n" + sum_fields() + result_fields() + "  };\n";
    const char *with = "const Args& a, const Index* at", *with_any = "const A& a, const Index* at";
    t += cat("  static void load(", with, ", Loaded& x) {\n", loads, "  }\n");
    t += cat("  static void load_late(", with, ", Late& y) {\n", late, "  }\n");
    t += cat("  template <class A>\n  static void load_fixed(", with_any, ", Loaded& x) {\n", fixed, "  }\n");
    t += cat("  template <class A>\n  static void load_moving(", with_any,
             ", const char* place, i32 part, i32 index, Loaded& x) {\n", moving, "  }\n", print_fetch());
    t += cat("  static void before(", with, ", Rows& r) {\n", before, "  }\n");
    t += cat("  template <int S, class A>\n  static void accumulate(", with_any,
             ", const Loaded& x, Kept& k, const Rows& r, Partial& p) {\n", accumulate, "  }\n");
    t += cat("  template <int S>\n  static void rows(", with, ", const Partial& p, Rows& r) {\n", rows, "  }\n");
    t += "  template <int S>\n  static void start(Partial& p) {\n" + each_row(starts) + "  }\n";
    t += "  template <int S>\n  static void join(Partial& p, const Partial& q) {\n" + each_row(joins) + "  }\n";
    t += "  template <int S>\n  static Partial shuffle(const Partial& p, int bits) {\n    Partial q;\n" +
         each_row(shuffles) + "    return q;\n  }\n";
    t += cat("  template <class A>\n  static void store(", with_any,
             ", const Loaded& x, const Late& y, Kept& k, const Rows& r, Sums& sums) {\n", stores, "  }\n");
    t += print_sums() + print_result() + print_take();
    t += cat("  static void store_rows(", with, ", const Rows& r) {\n", row_stores, "  }\n};\n}\n");
    auto row_values = std::count_if(e_.code.begin(), e_.code.end(), [](const Instr& c) { return c.row; });
    int sum_bytes = 0;
    for (const Instr& c : e_.code)
      if (c.kind == Instr::across) sum_bytes += c.lane == Lane::f32 ? 4 : 8;
    auto across = std::count_if(e_.code.begin(), e_.code.end(), [](const Instr& c) { return c.kind == Instr::across; });
    bool element_stores =
        std::any_of(e_.code.begin(), e_.code.end(), [](const Instr& c) { return c.kind == Instr::store && !c.row; });
    return {t,
            "tsr::dev::" + args,
            numbers_,
            p_.stages,
            estimates,
            static_cast<int>(partials_.size()),
            partial_bytes(),
            static_cast<int>(row_values),
            static_cast<int>(across),
            sum_bytes,
            live_bytes(),
            element_stores,
            !row_stores.empty()};
  }

 private:
  static size_t at(int i) { return static_cast<size_t>(i); }
  const Instr& instr(int i) const { return e_.code[at(i)]; }
  bool is_number(int i) const { return cuda::is_number(e_, l_, i); }
  bool is_block(int i) const { return l_.block && instr(i).block; }

  // --- operands of an instruction
  std::string literal(Lane lane, double v) {
    std::string type = lane_name(lane);
    if (lane != Lane::i64 && std::isinf(v)) return cat(type, v < 0 ? "(-infinity())" : "(infinity())");
    for (double plain : {0.0, 1.0, -1.0, 2.0, 0.5})
      if (v == plain && !std::signbit(v) == (plain >= 0)) return cat(type, "(", v, ")");
    return number({lane, v, kNone});
  }

  std::string number(const NumberPlan& n) {
    size_t i = 0;
    for (; i < numbers_.size(); ++i) {
      const NumberPlan& o = numbers_[i];
      bool same_value = std::memcmp(&o.value, &n.value, sizeof n.value) == 0;
      if (o.lane == n.lane && o.tensor == n.tensor && same_value) break;
    }
    if (i == numbers_.size()) numbers_.push_back(n);
    return cat("a.numbers[", i, "].", n.lane == Lane::f32 ? "f" : n.lane == Lane::f64 ? "d" : "i");
  }

  std::string value(int i) {
    const Instr& c = instr(i);
    if (c.kind == Instr::constant) return literal(c.lane, c.value);
    if (is_number(i)) return number({c.lane, 0, c.tensor});
    if (c.row) return cat("r.v", i, lane_);
    return p_.passed[at(i)] && p_.pass[at(i)] < now_ ? cat("w", i, "[i]") : cat("v", i);
  }

  std::string computed(int i) {
    const Instr& c = instr(i);
    switch (c.kind) {
      case Instr::apply:
        if (p_.narrow && c.lane == Lane::f32 && c.options.alpha1 == 1) {
          if (c.options.mode == tessera::PointwiseMode::exp) return cat("narrow_exp(", value(c.a), ")");
          if (c.options.mode == tessera::PointwiseMode::gelu) return cat("narrow_gelu(", value(c.a), ")");
        }
        return apply_text(
            e_.code, c, [&](int v) { return value(v); }, [&](Lane l, double v) { return literal(l, v); });
      case Instr::convert:
        return cat("convert_lane<", lane_name(c.lane), ">(", value(c.a), ")");
      default:
        return cat("round_as<", device_type(c.type), ">(", value(c.a), ")");
    }
  }

  // `more`: elements further on.
  std::string pointer(int k, const std::string& more = "") {
    const OperandPlan& o = l_.operands[at(k)];
    std::string place = cat("at[", k, "]", more);
    // Not by way of the tensor's pointer: the compiler takes whatever the arguments hold for memory of the device.
    if (o.access == OperandPlan::placed) return cat("reinterpret_cast<", device_type(o.type), "*>(", place, ")");
    if (o.columns)
      place = cat("in_f8_128x4<Index>(", place, ", Index(", number({Lane::i64, static_cast<double>(o.columns), kNone}),
                  "))");
    return cat("static_cast<", o.kind == Instr::load ? "const " : "", device_type(o.type), "*>(a.operands[", k,
               "].data) + ", place);
  }

  // --- element values
  // Read by the stores alone, and the same for every row: the cache holds it, registers need not.
  bool is_late(size_t k) const { return keep_ && p_.first[at(l_.operands[k].instr)] == p_.stages && l_.fixed(k); }
  bool is_early(size_t k) const { return !is_late(k); }
  // Of a block that walks over rows: loaded once, or for every row.
  bool is_fixed(size_t k) const { return is_early(k) && l_.fixed(k); }
  bool is_moving(size_t k) const { return is_early(k) && !l_.fixed(k); }

  std::string print_loads(bool (Printer::*which)(size_t) const, std::string* fields = nullptr) {
    std::string s, unused;
    if (!fields) fields = &unused;
    const char* into = which == &Printer::is_late ? "y" : "x";
    for (int k = 0; k < static_cast<int>(l_.operands.size()); ++k) {
      const OperandPlan& o = l_.operands[at(k)];
      if (o.kind != Instr::load || o.row || !(this->*which)(at(k))) continue;
      if (info(o.type).bits < 8) {
        const char* lane = lane_name(instr(o.instr).lane);
        *fields += cat("    Vec<", lane, ", V> t", k, ";\n");
        if (o.access == OperandPlan::given) continue;
        bool vector = o.access == OperandPlan::vector;
        s += cat("    load_packed_", vector ? "vector" : "each", "<", lane, ", ", device_type(o.type), ">(a.operands[",
                 k, "].data, at[", k, "], ", vector ? std::string() : cat("a.operands[", k, "].step, "), into, ".t", k,
                 ");\n");
      } else if (o.access == OperandPlan::same) {
        *fields += cat("    ", device_type(o.type), " t", k, ";\n");
        s += cat("    ", into, ".t", k, " = *(", pointer(k), ");\n");
      } else {
        *fields += cat("    Vec<", device_type(o.type), ", V> t", k, ";\n");
        if (o.access == OperandPlan::given) continue;
        if (o.staged && which == &Printer::is_moving)
          s += cat("    load_vector(reinterpret_cast<const ", device_type(o.type), "*>(place + part * ", staged_at(k),
                   " * V) + index * V, x.t", k, ");\n");
        else
          s += o.access == OperandPlan::vector
                   ? cat("    load_vector(", pointer(k), ", ", into, ".t", k, ");\n")
                   : cat("    load_each(", pointer(k), ", a.operands[", k, "].step, ", into, ".t", k, ");\n");
      }
    }
    return s;
  }

  // Registers of what is loaded.
  std::string loaded_words(bool (Printer::*which)(size_t) const) const {
    std::string s = "0";
    for (size_t k = 0; k < l_.operands.size(); ++k) {
      const OperandPlan& o = l_.operands[k];
      if (o.kind != Instr::load || o.row || o.access == OperandPlan::given || !(this->*which)(k)) continue;
      int bits = info(o.type).bits < 8 ? (instr(o.instr).lane == Lane::f32 ? 32 : 64) : info(o.type).bits;
      s += cat(" + (", bits, o.access == OperandPlan::same ? "" : " * V", " + 31) / 32");
    }
    return s;
  }

  // A number for each operand. No array: in the emulator all kernels of a process would share it.
  static std::string print_each(const char* name, const std::string& list) {
    return cat("  static constexpr int ", name, "(int k) {\n    constexpr int each[] = {", list,
               "0};\n    return each[k];\n  }\n");
  }

  // Where an operand's elements of a row lie in shared memory, in bytes for each element in front of them.
  int staged_at(int k) const {
    int bytes = 0;
    for (int i = 0; i < k; ++i)
      if (l_.operands[at(i)].staged) bytes += info(l_.operands[at(i)].type).bits / 8;
    return bytes;
  }
  std::string print_fetch() {
    std::string s;
    for (int k = 0; k < static_cast<int>(l_.operands.size()); ++k)
      if (const OperandPlan& o = l_.operands[at(k)]; o.staged)
        s += cat("    bulk_load(place + part * ", staged_at(k), " * V, ", pointer(k), ", u32(part * V * sizeof(",
                 device_type(o.type), ")), arrival);\n");
    if (s.empty()) return s;
    return cat("  static void fetch(const Args& a, const Index* at, char* place, i32 part, u64* arrival) {\n", s,
               "  }\n");
  }

  // A stage: what its reductions need of each element, and their partial results; or what is stored.
  std::string print_elements(int stage) {
    std::string text;
    for (now_ = 0; now_ <= p_.passes; ++now_) text += print_pass(stage);
    now_ = 0;
    return text;
  }

  std::string print_pass(int stage) {
    std::string before, body, after;
    bool stores = stage == p_.stages;
    for (int i = 0; i < static_cast<int>(e_.code.size()); ++i) {
      const Instr& c = instr(i);
      bool needed = p_.needs[at(stage)][at(i)] && !c.row && !is_number(i);
      if (c.kind == Instr::reduce && c.block) {
        if (needed && p_.pass[at(i)] == now_ + 1) print_block(i, before, body, after);
        continue;
      }
      if (p_.pass[at(i)] != now_) continue;
      if (needed) print_element(i, stage, before, is_block(i) ? before : body);
      if (reduces_row(c) && p_.known[at(i)] == stage)
        body += cat("      p.", partial_[at(i)], lane_, " = ", op_name(c.reduction), "::join(p.", partial_[at(i)],
                    lane_, ", ", partial_type(c), "(", value(c.a), "));\n");
      if (stores && c.kind == Instr::store && !c.row) print_store(i, before, body, after);
      if (stores && c.kind == Instr::across) body += cat("      sums.v", i, "[i] += ", value(c.a), ";\n");
    }
    if (body.empty()) return before;
    return cat(before, "#pragma unroll\n    for (int i = 0; i < V; ++i) {\n", body, "    }\n", after);
  }

  // The largest of a block: of a thread's elements, then among the threads that share the block.
  void print_block(int i, std::string& before, std::string& body, std::string& after) {
    const Instr& c = instr(i);
    before += cat("    ", lane_name(c.lane), " v", i, " = Max::identity<", lane_name(c.lane), ">();\n");
    body += cat("      v", i, " = larger(v", i, ", ", value(c.a), ");\n");
    after += cat("    v", i, " = largest_of<kLanes>(v", i, ");\n");
  }

  void print_element(int i, int stage, std::string& before, std::string& body) {
    const Instr& c = instr(i);
    if (p_.passed[at(i)]) before += cat("    ", lane_name(c.lane), " w", i, "[V];\n");
    print_value(i, stage, before, body);
    if (p_.passed[at(i)]) body += cat("      w", i, "[i] = v", i, ";\n");
  }

  void print_value(int i, int stage, std::string& before, std::string& body) {
    const Instr& c = instr(i);
    std::string type = lane_name(c.lane), set = cat("      ", type, " v", i, " = ");
    int k = l_.operand_of[at(i)];
    if (p_.kept[at(i)] && stage > p_.first[at(i)]) {
      body += cat(set, "k.v", i, "[i];\n");
      return;
    }
    if (c.kind == Instr::load) {
      const OperandPlan& o = l_.operands[at(k)];
      std::string from = cat(is_late(at(k)) ? "y" : "x", ".t", k);
      if (info(o.type).bits < 8) {
        body += cat(set, from, is_block(i) ? ".v[0];\n" : ".v[i];\n");
      } else if (o.access == OperandPlan::same) {
        body += cat(set, "to_lane<", type, ">(", from, ");\n");
      } else {
        before += cat("    ", type, " f", k, "[V];\n    unpack(", from, ", f", k, ");\n");
        body += cat(set, "f", k, "[i];\n");
      }
    } else if (c.kind == Instr::index) {
      body += cat(set, "i64(at[", k, "]) + i * a.operands[", k, "].step;\n");
    } else if (c.kind == Instr::random) {
      bool side_by_side = l_.operands[at(k)].access == OperandPlan::vector;
      before += cat("    float u", i, "[V];\n    uniforms", side_by_side ? "" : "_each", "<V>(u64(", value(c.a),
                    "), u64(", value(c.b), "), u64(at[", k, "])",
                    side_by_side ? std::string() : cat(", a.operands[", k, "].step"), ", u", i, ");\n");
      body += cat(set, "u", i, "[i];\n");
    } else {
      body += cat(set, computed(i), ";\n");
    }
    if (p_.kept[at(i)]) body += cat("      k.v", i, "[i] = v", i, ";\n");
  }

  void print_store(int i, std::string& before, std::string& body, std::string& after) {
    const Instr& c = instr(i);
    int k = l_.operand_of[at(i)], v = unrounded(e_, c.a, g_.tensor(c.tensor).dtype);
    const OperandPlan& o = l_.operands[at(k)];
    if (is_block(i)) {  // by the first of the threads that share it
      before += cat("    if (threadIdx.x % kLanes == 0) *(", pointer(k), ") = from_lane<", device_type(o.type), ">(",
                    value(v), ");\n");
      return;
    }
    before += cat("    ", lane_name(instr(v).lane), " o", k, "[V];\n");
    body += cat("      o", k, "[i] = ", value(v), ";\n");
    if (info(o.type).bits < 8) {
      after += cat("    store_packed<", device_type(o.type), ">(a.operands[", k, "].data, at[", k, "], o", k, ");\n");
      return;
    }
    if (o.access == OperandPlan::given) {
      after += cat("    pack(o", k, ", sums.t", k, ");\n");
      return;
    }
    after += cat("    Vec<", device_type(o.type), ", V> s", k, ";\n    pack(o", k, ", s", k, ");\n");
    const char* store = l_.passes ? "store_through" : "store_vector";
    after += o.access == OperandPlan::vector || o.access == OperandPlan::placed
                 ? cat("    ", store, "(", pointer(k), ", s", k, ");\n")
                 : cat("    store_each(", pointer(k), ", a.operands[", k, "].step, s", k, ");\n");
  }

  // Is a stage only for estimates, in kernels that read memory once for each stage?
  bool samples(int stage) const {
    if (keep_ || !l_.passes || stage < 0) return false;
    for (size_t i = 0; i < e_.code.size(); ++i)
      if (reduces_row(e_.code[i]) && p_.known[i] == stage && !e_.code[i].rough) return false;
    return true;
  }

  // --- row values: what becomes known after a stage (-1: before the first), for each of the W rows of a thread
  std::string print_rows(int stage) {
    std::string before, body;
    for (int i = 0; i < static_cast<int>(e_.code.size()); ++i) {
      const Instr& c = instr(i);
      if (!c.row || c.kind == Instr::store || is_number(i) || p_.known[at(i)] != stage) continue;
      int k = l_.operand_of[at(i)];
      std::string type = lane_name(c.lane), v;
      if (c.kind == Instr::reduce)
        v = cat(type, "(p.", partial_[at(i)], "[i])",
                samples(stage) ? cat(" * ", type, "(a.head.sample)") : std::string());
      else if (c.kind == Instr::load)
        v = print_row_load(i, before);
      else if (c.kind == Instr::index)
        v = cat("i64(at[", k, "]) + i * ", row_step(k));
      else if (c.kind == Instr::random)
        v = cat("uniform_at(u64(", value(c.a), "), u64(", value(c.b), "), u64(at[", k, "] + i * ", row_step(k), "))");
      else
        v = in_row([&] { return computed(i); });
      body += cat("      r.v", i, "[i] = ", v, ";\n");
    }
    return body.empty() ? body : cat(before, each_row(body));
  }

  // What an operand's offset adds from one of a thread's rows to the next.
  std::string row_step(int k) const { return l_.columns ? cat("a.operands[", k, "].step") : "0"; }

  std::string print_row_load(int i, std::string& before) {
    int k = l_.operand_of[at(i)];
    const OperandPlan& o = l_.operands[at(k)];
    const char* type = lane_name(instr(i).lane);
    if (info(o.type).bits < 8)
      return cat("load_packed<", type, ", ", device_type(o.type), ">(a.operands[", k, "].data, at[", k, "] + i * ",
                 row_step(k), ")");
    if (!l_.columns || o.access == OperandPlan::same) return cat("to_lane<", type, ">(*(", pointer(k), "))");
    before += cat("    Vec<", device_type(o.type), ", W> q", k, ";\n    ");
    before += o.access == OperandPlan::vector ? cat("load_vector(", pointer(k), ", q", k, ");\n")
                                              : cat("load_each(", pointer(k), ", ", row_step(k), ", q", k, ");\n");
    return cat("to_lane<", type, ">(q", k, ".v[i])");
  }

  template <class F>
  std::string in_row(const F& f) {
    std::string element = lane_;
    lane_ = "[i]";
    std::string text = f();
    lane_ = element;
    return text;
  }

  static std::string each_row(const std::string& body) {
    return cat("#pragma unroll\n    for (int i = 0; i < W; ++i) {\n", body, "    }\n");
  }

  std::string print_row_stores() {
    std::string before, body, after;
    for (int i = 0; i < static_cast<int>(e_.code.size()); ++i) {
      const Instr& c = instr(i);
      if (c.kind != Instr::store || !c.row) continue;
      int k = l_.operand_of[at(i)];
      const OperandPlan& o = l_.operands[at(k)];
      before += cat("    Vec<", device_type(o.type), ", W> q", k, ";\n");
      body += cat("      q", k, ".v[i] = from_lane<", device_type(o.type), ">(", in_row([&] { return value(c.a); }),
                  ");\n");
      if (o.columns) {
        std::string step = cat(" + Index(i * ", row_step(k), ")");
        after += each_row(cat("      *(", pointer(k, step), ") = q", k, ".v[i];\n"));
        continue;
      }
      bool vector = l_.columns && o.access == OperandPlan::vector;
      after += vector ? cat("    store_vector(", pointer(k), ", q", k, ");\n")
                      : cat("    store_each(", pointer(k), ", ", row_step(k), ", q", k, ");\n");
    }
    return body.empty() ? body : cat(before, each_row(body), after);
  }

  // --- partial results of reductions
  // Products in f64: partial ones leave the range of f32 long before the result does.
  static std::string partial_type(const Instr& c) {
    return c.lane == Lane::f32 && c.reduction == ReduceMode::mul ? "double" : lane_name(c.lane);
  }

  std::string print_partials(int stage, const std::string& form) {
    std::string s;
    for (int i = 0; i < static_cast<int>(e_.code.size()); ++i) {
      const Instr& c = instr(i);
      if (!reduces_row(c) || p_.known[at(i)] != stage) continue;
      std::string line = form, id = partial_[at(i)];
      auto replace = [&](const std::string& from, const std::string& to) {
        for (size_t p = line.find(from); p != std::string::npos; p = line.find(from, p + to.size()))
          line.replace(p, from.size(), to);
      };
      replace(".start", "");
      replace("#", id);
      replace("OP", op_name(c.reduction));
      replace("<T>", "<" + partial_type(c) + ">");
      s += cat("    if constexpr (S == ", stage, ") ", line, "\n");
    }
    return s;
  }

  // Partial results live as long as their stage does: those of another one take the same place.
  void name_partials() {
    partial_.assign(e_.code.size(), "");
    std::vector<std::pair<int, std::string>> taken;  // by stage
    for (size_t i = 0; i < e_.code.size(); ++i) {
      if (!reduces_row(e_.code[i])) continue;
      std::string type = partial_type(e_.code[i]);
      auto of_stage = std::count(taken.begin(), taken.end(), std::pair(p_.known[i], type));
      taken.emplace_back(p_.known[i], type);
      partial_[i] = cat(type[0], of_stage);
      if (std::count(partial_.begin(), partial_.end(), partial_[i]) == 1) partials_.push_back(static_cast<int>(i));
    }
  }
  std::string partial_fields() const {
    std::string s;
    for (int i : partials_) s += cat("    ", partial_type(instr(i)), " ", partial_[at(i)], "[W];\n");
    return s;
  }

  // The size of Partial.
  int partial_bytes() const {
    int bytes = 0, largest = 1, rows = l_.columns ? l_.vector : 1;
    for (int i : partials_) {
      int each = partial_type(instr(i)) == "float" ? 4 : 8;
      bytes = (bytes + each - 1) / each * each + each * rows;
      largest = std::max(largest, each);
    }
    return (bytes + largest - 1) / largest * largest;
  }

  // Bytes that partial results and values of its rows take in a thread's registers during a pass, at most.
  int live_bytes() const {
    int most = 0;
    for (int stage = 0; stage <= p_.stages; ++stage) {
      std::vector<bool> live(e_.code.size(), false);
      for (size_t i = 0; i < e_.code.size(); ++i) {
        const Instr& c = e_.code[i];
        bool reduced = reduces_row(c) && p_.known[i] == stage, stored = c.kind == Instr::store && !c.row;
        if (reduced) live[i] = true;
        if (!reduced && !(stored && stage == p_.stages) && !(p_.needs[at(stage)][i] && !c.row)) continue;
        for (int k : {c.a, c.b, c.c})
          if (k >= 0 && instr(k).row && !is_number(k)) live[at(k)] = true;
      }
      int bytes = 0;
      for (size_t i = 0; i < e_.code.size(); ++i)
        if (live[i]) bytes += e_.code[i].lane == Lane::f32 ? 4 : 8;
      most = std::max(most, bytes * (l_.columns ? l_.vector : 1));
    }
    return most;
  }
  std::string row_fields() const {
    std::string s;
    for (size_t i = 0; i < e_.code.size(); ++i) {
      const Instr& c = e_.code[i];
      if (c.row && c.kind != Instr::store && !is_number(static_cast<int>(i)))
        s += cat("    ", lane_name(c.lane), " v", i, "[W];\n");
    }
    return s;
  }
  // --- sums over all rows: each thread adds up its elements, blocks leave theirs in memory, a last kernel joins them
  bool is_sum(size_t i) const { return e_.code[i].kind == Instr::across; }
  std::string sum_fields() const {
    std::string s;
    for (size_t i = 0; i < e_.code.size(); ++i)
      if (is_sum(i)) s += cat("    ", lane_name(e_.code[i].lane), " v", i, "[V];\n");
    return s;
  }
  // From where the kernel found what it gives to the first of such loads.
  std::string print_take() {
    for (size_t k = 0; k < l_.operands.size(); ++k) {
      const OperandPlan& o = l_.operands[k];
      if (o.kind != Instr::load || o.access != OperandPlan::given) continue;
      std::string type = device_type(o.type), lane = lane_name(instr(o.instr).lane);
      return cat("  static void take(const char* from, Loaded& x) {\n    ",
                 info(o.type).bits < 8
                     ? cat("load_packed_vector<", lane, ", ", type, ">(from, 0, x.t", k, ");\n  }\n")
                     : cat("load_vector(reinterpret_cast<const ", type, "*>(from), x.t", k, ");\n  }\n"));
    }
    return "";
  }
  // What the kernel itself takes; of one such result it gets the first.
  std::string result_fields() const {
    std::string s;
    for (size_t k = 0; k < l_.operands.size(); ++k)
      if (const OperandPlan& o = l_.operands[k]; o.kind == Instr::store && o.access == OperandPlan::given)
        s += cat("    Vec<", device_type(o.type), ", V> t", k, ";\n");
    return s;
  }
  std::string print_result() const {
    for (size_t k = 0; k < l_.operands.size(); ++k)
      if (const OperandPlan& o = l_.operands[k]; o.kind == Instr::store && o.access == OperandPlan::given)
        return cat("  static const Vec<", device_type(o.type), ", V>& result(const Sums& s) { return s.t", k, "; }\n");
    return "";
  }
  std::string print_sums() {
    std::string clear, join, store;
    for (size_t i = 0; i < e_.code.size(); ++i) {
      if (!is_sum(i)) continue;
      int k = l_.operand_of[i];
      const OperandPlan& o = l_.operands[at(k)];
      clear += cat("      s.v", i, "[i] = 0;\n");
      join += cat("      s.v", i, "[i] += q.v", i, "[i];\n");
      store += cat("    Vec<", device_type(o.type), ", V> o", k, ";\n    pack(s.v", i, ", o", k, ");\n");
      store += o.access == OperandPlan::vector
                   ? cat("    store_vector(", pointer(k), ", o", k, ");\n")
                   : cat("    store_each(", pointer(k), ", a.operands[", k, "].step, o", k, ");\n");
    }
    auto each = [](const std::string& body) {
      return body.empty() ? body : cat("#pragma unroll\n    for (int i = 0; i < V; ++i) {\n", body, "    }\n");
    };
    return cat("  static void clear(Sums& s) {\n", each(clear), "  }\n  static void add(Sums& s, const Sums& q) {\n",
               each(join), "  }\n  static void store_sums(const Args& a, const Index* at, const Sums& s) {\n", store,
               "  }\n");
  }

  bool shares_bytes() const {
    return std::any_of(l_.operands.begin(), l_.operands.end(),
                       [](const OperandPlan& o) { return o.kind == Instr::store && info(o.type).bits < 8; });
  }

  std::string kept_fields() const {
    std::string s;
    for (size_t i = 0; i < e_.code.size(); ++i)
      if (p_.kept[i]) s += cat("    ", lane_name(e_.code[i].lane), " v", i, "[V];\n");
    return s;
  }

  const Expr& e_;
  const Graph& g_;
  const Layout& l_;
  bool keep_;
  Passes p_;
  std::string args_, name_;
  std::string lane_ = "[0]";          // which of a thread's rows an element belongs to
  int now_ = 0;                       // the pass that is printed
  std::vector<std::string> partial_;  // by instruction: its field of Partial
  std::vector<int> partials_;         // the first instruction of each field
  std::vector<NumberPlan> numbers_;
  std::string loaded_, late_loaded_;
};

}  // namespace

dev::Number to_number(Lane lane, double v) {
  dev::Number n{};
  if (lane == Lane::f32)
    n.f = static_cast<float>(v);
  else if (lane == Lane::f64)
    n.d = v;
  else
    n.i = static_cast<int64_t>(v);
  return n;
}

dev::Number read_number(Lane lane, DType type, const void* data) {
  dev::Number n{};
  if (lane != Lane::i64) return to_number(lane, load<double>(type, data, 0));
  n.i = load<int64_t>(type, data, 0);
  return n;
}

Reason check_code(const Expr& e, const Graph& g) {
  for (const Instr& c : e.code) {
    if (c.kind == Instr::random && (!e.code[static_cast<size_t>(c.a)].row || !e.code[static_cast<size_t>(c.b)].row))
      return Reason::no("random numbers with a seed or offset for each element");
    if (c.tensor != kNone && is_complex(g.tensor(c.tensor).dtype))
      return Reason::no("tensor ", describe(g.tensor(c.tensor)), " is complex");
  }
  return Reason::yes();
}

Code print_code(const Expr& e, const Graph& g, const Layout& l, bool keep, const std::string& args,
                const std::string& name) {
  return Printer(e, g, l, keep, args, name).run();
}

}  // namespace tsr::cuda
