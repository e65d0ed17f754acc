// SPDX-License-Identifier: Apache-2.0
// Random attention, forward and backward: all options with each other, at sizes beside those of tiles.
#include <algorithm>
#include <cmath>

#include "graph/text.hpp"
#include "harness/fuzz_kinds.hpp"

namespace tsr::fuzz {
namespace {

class Attention {
 public:
  explicit Attention(Draws& d) : k_(d.kind), s_(d.size) {
    backward_ = k_.chance(45);
    type_ = k_.of<const char*>({"bf16", "bf16", "bf16", "bf16", "f16", "f16", "f32", "e4m3", "e4m3", "e5m2"});
    narrow_ = type_[0] == 'e';
    choose_sizes();
    // Packed sequences of 8-bit keys have no case that one engine takes alone.
    packed_q_ = k_.chance(14), packed_kv_ = !narrow_ && k_.chance(packed_q_ ? 70 : 5);
    paged_ = !backward_ && !packed_kv_ && k_.chance(14);
    lengths_q_ = packed_q_ || k_.chance(12), lengths_kv_ = packed_kv_ || paged_ || k_.chance(lengths_q_ ? 70 : 15);
  }

  std::string run() {
    operands();
    std::string options = masks() + changes() + lengths();
    std::string call = backward_ ? gradients(options) : forward(options);
    return inputs_ + call + directives();
  }

 private:
  // Sequences from one step to several tiles, so that the oracle takes some tenths of a second.
  void choose_sizes() {
    d_ = k_.of<int64_t>({8, 16, 16, 24, 32, 40, 64, 64, 64, 72, 80, 96, 128, 128, 128, 136, 160, 192, 256});
    if (narrow_) d_ = std::max<int64_t>(16, d_ / 16 * 16);
    if (k_.chance(4)) d_ += 3;  // rows that no vector reads
    dv_ = k_.chance(75) ? d_ : k_.of<int64_t>({8, 16, 40, 64, 96, 128});
    int64_t share = k_.of<int64_t>({1, 1, 1, 2, 4, 8, 3});
    b_ = s_.pick(1, 3), hk_ = s_.pick(1, 2), hv_ = k_.chance(94) ? hk_ : 1, hq_ = hk_ * share;
    sq_ = steps(), skv_ = steps();
    int64_t most = s_.chance(80) ? 4'000'000 : 10'000'000;
    while (b_ * hq_ * sq_ * skv_ * (d_ + dv_) * (backward_ ? 3 : 1) > most) {
      int64_t& larger = b_ > 1 ? b_ : sq_ > skv_ ? sq_ : skv_;
      larger = (larger + 1) / 2;
    }
  }
  int64_t steps() {
    int64_t kind = s_.pick(0, 9);
    if (kind < 2) return s_.pick(1, 16);
    if (kind < 6) return s_.pick(1, 300);
    return std::max<int64_t>(1, s_.of<int64_t>({64, 128, 192, 256, 384}) + s_.of<int64_t>({-1, 0, 0, 1, 8}));
  }

  std::string scalar(const char* name, const std::string& values) {
    inputs_ += cat(name, " = input f32[1,1,1,1]; ");
    data_ += cat(" ", name, "=values:", values);
    return name;
  }
  std::string factor(const char* name) { return scalar(name, s_.of<const char*>({"1", "0.5", "3", "0.01", "-1.5"})); }
  void data(const std::string& name, const std::string& kind) { data_ += cat(" ", name, "=", kind); }

  // "bf16[2,4,70,64]:bshd", or packed: steps lie behind each other, and begin where `offsets` say.
  std::string sequence(const std::string& type, int64_t h, int64_t s, int64_t d, bool packed, bool result = false) {
    Sizes sizes = {b_, h, s, d};
    std::string t = cat(type, "[", list(sizes), "]");
    if (packed) return cat(t, ":[", list({s * h * d, d, h * d, 1}), "]");
    std::string layout = k_.of<const char*>({":bhsd", ":bhsd", ":bshd", ":bshd", ":sbhd", "gaps", "across"});
    if (layout == "gaps") return cat(t, ":[", list({h * s * (d + 8), s * (d + 8), d + 8, 1}), "]");
    if (layout == "across" && !result && k_.chance(30)) return cat(t, ":[", list({h * s * d, s * d, 1, s}), "]");
    return layout == "across" ? t : t + layout;
  }
  void input(const char* name, const std::string& type, int64_t h, int64_t s, int64_t d, const char* offsets) {
    inputs_ += cat(name, " = input ", sequence(type, h, s, d, offsets != nullptr),
                   offsets ? cat(" ragged=", offsets, "*", h * d) : "", "; ");
  }
  const char* packed_q() const { return packed_q_ ? "tq" : nullptr; }
  const char* packed_kv() const { return packed_kv_ ? "tk" : nullptr; }

  void operands() {
    if (packed_q_) inputs_ += cat("tq = input i32[", b_ + 1, "]; ");
    if (packed_kv_) inputs_ += cat("tk = input i32[", b_ + 1, "]; ");
    input("q", type_, hq_, sq_, d_, packed_q());
    if (paged_) {
      pages();
    } else {
      input("k", type_, hk_, skv_, d_, packed_kv());
      input("v", type_, hv_, skv_, dv_, packed_kv());
    }
    // Rows that are all the same, numbers far apart, whole numbers: maxima that tie, one weight of 1.
    std::string odd = s_.of<const char*>({"", "", "", "", "", "", "integers", "values:0.5", "zeros", "range:2,3"});
    if (!odd.empty()) data(s_.of<const char*>({"q", "k", "v"}), odd);
  }

  void pages() {
    std::string type = type_;
    if (!narrow_ && k_.chance(15)) type = "e4m3";  // 8-bit keys of 16-bit queries
    int64_t page_k = k_.of<int64_t>({1, 8, 16, 16, 32, 64, 128, 256, 5}), page_v = k_.chance(75) ? page_k : 64;
    auto container = [&](const char* name, const char* table, int64_t h, int64_t d, int64_t page) {
      int64_t count = (skv_ + page - 1) / page, all = count * b_ + s_.pick(0, 3);
      inputs_ += cat(name, " = input ", type, "[", list({all, h, page, d}), "]", k_.of<const char*>({"", ":bshd"}),
                     "; ", table, " = input i32[", list({b_, 1, count, 1}), "]; ");
      data(table, cat("below:", all));
    };
    container("k", "pk", hk_, d_, page_k);
    container("v", "pv", hv_, dv_, page_v);
    paging_ = cat(" page_table_k=pk page_table_v=pv max_seq_kv=", skv_);
  }

  std::string masks() {
    std::string text;
    if (k_.chance(15)) {
      inputs_ += cat(k_.of<const char*>({"a = input", "a = scalar"}), " f32[1,1,1,1]; ");
      data("a", cat("values:", scale()));
      text += " scale=a";
    } else {
      text += cat(" scale=", scale());
    }
    switch (k_.pick(0, 7)) {
      case 0:
      case 1:
        text += " right=0";
        break;
      case 2:
        text += " right=0 align=bottom_right";
        break;
      case 3:
        text += cat(" left=", s_.pick(0, skv_), k_.of<const char*>({"", " right=0", " right=0 align=bottom_right"}));
        break;
      case 4:
        text +=
            cat(" left=", s_.pick(0, 80), " right=", s_.pick(0, 80), k_.of<const char*>({"", " align=bottom_right"}));
        break;
      case 5:
        text += cat(" right=", s_.pick(0, 80), k_.of<const char*>({"", " align=bottom_right"}));
        break;
      default:;
    }
    return text;
  }

  // Scores of about 1, or of any size where results stay in the range of their type.
  std::string scale() {
    double usual = 1 / std::sqrt(static_cast<double>(d_));
    double factor = s_.of<double>({1, 1, 1, 0.2, -1, 0});
    if (!backward_ && s_.chance(15)) factor = s_.of<double>({20, -3, 1e-4});
    return print_number(std::round(usual * factor * 1e6) / 1e6);
  }

  // What changes scores one by one, or weights.
  std::string changes() {
    std::string text;
    if (k_.chance(16)) {
      bias_ = true;
      inputs_ += cat(
          "m = input ", k_.of<const char*>({"f32", "bf16"}), "[",
          list({k_.chance(50) ? 1 : b_, k_.chance(50) ? 1 : hq_, k_.chance(40) ? 1 : sq_, k_.chance(10) ? 1 : skv_}),
          "]; ");
      // Logarithms of sums from -500 to 80.
      if (s_.chance(25)) data("m", s_.of<const char*>({"range:-500,-490", "range:70,80", "values:0,-80,-1e4,3"}));
      text += " bias=m";
    }
    if (k_.chance(8)) text += " alibi=true";
    if (k_.chance(10)) {
      sink_ = true;
      inputs_ += cat("z = input f32[1,", hq_, ",1,1]; ");
      text += " sink=z";
    }
    if (k_.chance(14)) {
      bool cap = k_.chance(60);
      mod_ = cap ? " score_mod={ s -> mul (tanh (div s 3)) 3 }" : " score_mod={ s -> mul s 0.7 }";
      mod_bwd_ = cap ? " score_mod_bwd={ ds s -> tanh_bwd (div s 3) ds }" : " score_mod_bwd={ ds s -> mul ds 0.7 }";
      text += mod_;
    }
    if (k_.chance(7)) {
      inputs_ +=
          cat("bm = input u8[",
              list({k_.chance(50) ? 1 : b_, k_.chance(50) ? 1 : hq_, (sq_ + 127) / 128, (skv_ + 127) / 128}), "]; ");
      data("bm", "below:2");
      text += " block_mask=bm";
    }
    if (k_.chance(10)) {
      inputs_ += "seed = scalar i64; offset = scalar i64; ";
      data("seed", cat("values:", s_.pick(0, 1'000'000))), data("offset", cat("values:", s_.pick(0, 100)));
      text += cat(" dropout=", s_.of<const char*>({"0.1", "0.5", "0.9"}), " dropout_seed=seed dropout_offset=offset");
    } else if (k_.chance(4)) {
      inputs_ += cat("dm = input u8[",
                     list({k_.chance(50) ? 1 : b_, k_.chance(50) ? 1 : hq_, k_.chance(50) ? 1 : sq_, skv_}), "]; ");
      data("dm", "below:2");
      text += " dropout_mask=dm";
    }
    if (narrow_) {
      for (const char* name : {"descale_q", "descale_k", "descale_v"})
        if (k_.chance(60)) text += cat(" ", name, "=", factor(cat("f", name + 8).c_str()));
      if (k_.chance(40)) text += cat(" scale_s=", scalar("fs", "64"), " descale_s=", scalar("us", "0.015625"));
    }
    return text;
  }

  std::string lengths() {
    std::string text;
    auto side = [&](bool known, bool packed, const char* side, const char* name, const char* offsets, int64_t most) {
      if (!known) return;
      Sizes lengths, sums = {0};
      for (int64_t i = 0; i < b_; ++i) {
        lengths.push_back(s_.chance(15) ? 0 : s_.chance(30) ? most : s_.pick(0, most));
        sums.push_back(sums.back() + lengths.back());
      }
      if (packed) data(offsets, cat("values:", list(sums)));
      if (packed && k_.chance(60)) {
        text += cat(" cu_seq_len_", side, "=", offsets);
        return;
      }
      inputs_ += cat(name, " = input i32[", b_, "]; ");
      data(name, cat("values:", list(lengths)));
      text += cat(" seq_len_", side, "=", name);
    };
    side(lengths_q_, packed_q_, "q", "lq", "tq", sq_);
    side(lengths_kv_, packed_kv_, "kv", "lk", "tk", skv_);
    return text + paging_;
  }

  std::string result_type() { return narrow_ ? k_.of<std::string>({type_, "bf16", "f32"}) : type_; }
  // ", name" as a result, of the queries: packed as they are.
  std::string rows_of_queries(const char* slot, const char* name) {
    ends_ += cat("; output ", name, packed_q_ ? cat("; with ", name, " ragged=tq*", hq_) : "");
    std::string strides = packed_q_ ? cat(":[", list({sq_ * hq_, 1, hq_, 1}), "]") : "";
    return cat(", ", slot, ":", name, " f32[", list({b_, hq_, sq_, 1}), "]", strides);
  }
  std::string one_number(const char* slot, const char* name) {
    ends_ += cat("; output ", name);
    return cat(", ", slot, ":", name);
  }
  std::string sequence_result(const char* name, int64_t h, int64_t s, int64_t d, const char* offsets) {
    ends_ += cat("; output ", name, offsets ? cat("; with ", name, " ragged=", offsets, "*", h * d) : "");
    return cat(name, " ", sequence(result_type(), h, s, d, offsets != nullptr, true));
  }

  std::string forward(const std::string& options) {
    std::string results = sequence_result("o", hq_, sq_, dv_, packed_q());
    if (k_.chance(60)) results += rows_of_queries("stats", "st");
    if (k_.chance(12)) results += rows_of_queries("max", "mx");
    if (k_.chance(12)) results += rows_of_queries("sum_exp", "se");
    std::string more;
    if (narrow_ && k_.chance(40)) results += one_number("amax_s", "as");
    if (narrow_ && k_.chance(40)) results += one_number("amax_o", "ao");
    if (narrow_ && k_.chance(40)) more += cat(" scale_o=", scalar("so", "2"));
    if (k_.chance(8)) more += " stats_log2=true";
    return cat(results, " = sdpa_fwd q k v", options, more, ends_);
  }

  std::string gradients(std::string options) {
    // Statistics of the scores themselves, as training has them, or any: then weights are not at most 1.
    bool trained = !packed_q_ && !narrow_ && k_.chance(50);
    std::string text, operands = "q k v o do stats";
    input("do", type_, hq_, sq_, dv_, packed_q());
    if (trained) {
      text = cat("o ", type_, "[", list({b_, hq_, sq_, dv_}), "], stats = sdpa_fwd q k v", options, "; ");
    } else {
      input("o", type_, hq_, sq_, dv_, packed_q());
      input("stats", "f32", hq_, sq_, 1, packed_q());
      data("stats", "range:4,7");
    }
    if (k_.chance(10)) {
      input("delta", "f32", hq_, sq_, 1, packed_q());
      options += " delta=delta";
    }
    if (narrow_) {
      for (const char* name : {"descale_o", "descale_do", "descale_dp"})
        if (k_.chance(40)) options += cat(" ", name, "=", scalar(cat("i", name + 7).c_str(), "0.5"));
      for (const char* name : {"scale_dq", "scale_dk", "scale_dv", "scale_dp"})
        if (k_.chance(40)) options += cat(" ", name, "=", scalar(cat("r", name + 5).c_str(), "2"));
    }
    options += mod_bwd_;
    std::string results =
        cat(sequence_result("dq", hq_, sq_, d_, packed_q()), ", ", sequence_result("dk", hk_, skv_, d_, packed_kv()),
            ", ", sequence_result("dv", hv_, skv_, dv_, packed_kv()));
    if (bias_ && k_.chance(60)) results += one_number("dbias", "db");
    if (sink_ && k_.chance(70)) results += one_number("dsink", "dz");
    if (narrow_)
      for (const char* name : {"amax_dq", "amax_dk", "amax_dv", "amax_dp"})
        if (k_.chance(30)) results += one_number(name, name);
    return cat(text, results, " = sdpa_bwd ", operands, options, ends_);
  }

  std::string directives() const { return data_.empty() ? "" : cat(" #!", data_); }

  Draw &k_, &s_;
  bool backward_, narrow_, packed_q_, packed_kv_, paged_, lengths_q_, lengths_kv_, bias_ = false, sink_ = false;
  std::string type_;
  int64_t d_ = 0, dv_ = 0, b_ = 0, hq_ = 0, hk_ = 0, hv_ = 0, sq_ = 0, skv_ = 0;
  std::string inputs_, data_, ends_, paging_, mod_, mod_bwd_;
};

}  // namespace

std::string attention(Draws& d) { return Attention(d).run(); }

}  // namespace tsr::fuzz
