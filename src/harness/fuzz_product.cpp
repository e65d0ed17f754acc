// SPDX-License-Identifier: Apache-2.0
// Random products of matrices: all types and layouts, at sizes beside those of tiles, with work before and behind them.
#include <algorithm>

#include "harness/fuzz_kinds.hpp"

namespace tsr::fuzz {
namespace {

class Product {
 public:
  explicit Product(Draws& d) : d_(d), k_(d.kind), s_(d.size) {
    bool vectors = k_.chance(60);  // rows that the copy engine takes
    auto size = [&] {
      int64_t kind = s_.pick(0, 9), n = 0;
      if (kind < 3)
        n = s_.pick(1, 24);
      else if (kind < 7)
        n = s_.pick(1, 200);
      else
        n = s_.of<int64_t>({64, 128, 192, 256}) + s_.of<int64_t>({-8, 0, 0, 8, 1});
      return vectors ? (n + 7) / 8 * 8 : n;
    };
    m_ = size(), n_ = size(), kk_ = s_.chance(70) ? size() : s_.pick(1, 150) * 8;
    if (vectors && s_.chance(30)) m_ = s_.pick(1, 40);
    if (k_.chance(30)) batch_ = s_.pick(2, 5);
    int64_t most = s_.chance(80) ? 2'000'000 : 8'000'000;
    while (batch_ * m_ * n_ * kk_ > most) {
      int64_t& largest = batch_ > 1 ? batch_ : m_ >= n_ && m_ >= kk_ ? m_ : n_ >= kk_ ? n_ : kk_;
      largest = std::max<int64_t>(1, vectors && batch_ == 1 ? largest / 16 * 8 : largest / 2);
    }
  }

  std::string run() {
    struct Types {
      const char *a, *b, *result;
    };
    auto [a, b, result] = k_.of<Types>({{"bf16", "bf16", "bf16"},
                                        {"bf16", "bf16", "bf16"},
                                        {"bf16", "bf16", "f32"},
                                        {"f16", "f16", "f16"},
                                        {"f16", "f16", "f32"},
                                        {"f32", "f32", "f32"},
                                        {"f32", "f32", "f32"},
                                        {"e4m3", "e4m3", "bf16"},
                                        {"e4m3", "e5m2", "bf16"},
                                        {"e5m2", "e4m3", "f32"},
                                        {"i8", "i8", "i32"},
                                        {"u8", "i8", "i32"},
                                        {"i8", "i8", "f32"},
                                        {"bf16", "f16", "f32"},
                                        {"f64", "f64", "f64"}});
    bool is_bf16 = a == std::string("bf16"), narrow = is_bf16 && k_.chance(25);
    const char *left = "a", *right = narrow ? "v" : "b";
    std::string text = narrow ? weights(b) : "";  // first: blocks of factors are whole
    text += cat("a = input ", operand(a, batch_, m_, kk_), "; ");
    if (!narrow) {
      text += cat("b = input ", operand(b, k_.chance(50) ? 1 : batch_, kk_, n_), frozen(), "; ");
      if (is_bf16 && k_.chance(12)) {
        text += cat("g = input f32[", list(matrix(1, 1, kk_)),
                    "]; u bf16 = ", k_.of<const char*>({"mul a g compute=f32", "relu (mul a g compute=f32)"}), "; ");
        left = "u";
      }
    }
    std::string options = a == std::string("f32") && k_.chance(50) ? " tf32=true"
                          : a[0] == 'e' && k_.chance(30)           ? " fast_sums=true"
                                                                   : "";
    std::string product = cat("matmul ", left, " ", right, options);
    if (result == std::string("i32")) return cat(text, "y i32 = ", product, "; output y i32");
    // Two products with the same left operand, one of which is a gate.
    if (k_.chance(10)) {
      text += cat("e = input ", operand(b, 1, kk_, n_), "; h = matmul ", left, " e", options, "; ");
      return cat(text, "p = ", product, "; y = mul (", k_.of<const char*>({"silu", "gelu", "sigmoid"}),
                 " p) h; output y ", result);
    }
    text += cat("y = ", product, "; ");
    bool reduced = k_.chance(20);
    if (reduced) text += reduction();
    Sizes one = k_.chance(70) ? matrix(1, 1, n_) : matrix(1, m_, 1);
    text += work_behind(d_, operand(result[0] == 'f' ? "f32" : "bf16", batch_, m_, n_), one);
    text += k_.chance(10) && a != std::string("f64") ? "e4m3" : result;
    // A sum may be that of results before they are rounded: of whole numbers it is the same.
    return reduced ? text + " #! all=integers" : text;
  }

 private:
  Sizes matrix(int64_t batch, int64_t rows, int64_t columns) const {
    return batch_ > 1 ? Sizes{batch, rows, columns} : Sizes{rows, columns};
  }
  // Row by row, column by column, or with gaps behind the rows.
  std::string operand(const std::string& type, int64_t batch, int64_t rows, int64_t columns) {
    int64_t gap = k_.chance(20) ? k_.of<int64_t>({8, 16, 3}) : 0;
    bool across = k_.chance(40);
    Sizes strides = across ? Sizes{1, rows + gap} : Sizes{columns + gap, 1};
    if (batch_ > 1) strides.insert(strides.begin(), (across ? columns * strides[1] : rows * strides[0]) + gap);
    return cat(type, "[", list(matrix(batch, rows, columns)), "]:[", list(strides), "]");
  }
  std::string frozen() { return k_.chance(15) ? " frozen=true" : ""; }

  // Weights of few bits as v, with factors for columns, rows or blocks of them.
  std::string weights(const std::string& type) {
    constexpr int64_t kBlock = 32;
    std::string narrow = k_.of<const char*>({"i8", "u8", "e4m3", "e5m2", "i4", "e2m1"});
    int way = static_cast<int>(k_.pick(0, 3));
    bool packed = narrow == "i4" || narrow == "e2m1";  // two to a byte, along either dimension
    if (packed || way == 3) kk_ = (kk_ + kBlock - 1) / kBlock * kBlock, n_ = (n_ + 1) / 2 * 2;
    std::string text =
        cat("w = input ", narrow, "[", list(matrix(1, kk_, n_)), "]", batch_ == 1 && k_.chance(60) ? ":col" : "", "; ");
    if (way == 0) return cat(text, "v ", type, " = identity w compute=f32; ");
    if (way == 3)
      return cat(text, "f = input ", k_.of<const char*>({"f32", "e8m0", "f16"}), "[", list(matrix(1, kk_ / kBlock, n_)),
                 "]; v ", type, " = block_scale_dequantize w f block=", kBlock, ",1; ");
    return cat(text, "f = input f32[", list(way == 1 ? matrix(1, 1, n_) : matrix(1, kk_, 1)), "]; v ", type,
               " = mul w f compute=f32; ");
  }

  std::string reduction() {
    std::string last = cat(batch_ > 1 ? 2 : 1), rows = cat(batch_ > 1 ? 1 : 0);
    std::string all = batch_ > 1 ? "0,1,2" : "0,1";
    return cat("r = ", k_.of<const char*>({"sum", "reduce_amax", "reduce_max", "mean", "reduce_norm2"}),
               " y axes=", k_.of<std::string>({last, rows, all}), "; output r f32; ");
  }

  Draws& d_;
  Draw &k_, &s_;
  int64_t m_ = 0, n_ = 0, kk_ = 0, batch_ = 1;
};

}  // namespace

std::string product(Draws& d) { return Product(d).run(); }

}  // namespace tsr::fuzz
