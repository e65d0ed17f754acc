// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/gemm/moe.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/product/tile.hpp"
#include "engines/cpu/vector/kernels.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cpu {
namespace {

using tessera::MoeMode;
using namespace slots::moe_matmul;
namespace bwd = slots::moe_matmul_bwd;
// Pointers that operands find; those of a range are set for each.
enum Table : TensorId { kLeft, kRight, kRows };

template <class T>
constexpr DType kType = sizeof(T) == 4 ? DType::f32 : DType::f64;
template <class T>
constexpr Lane kLane = sizeof(T) == 4 ? Lane::f32 : Lane::f64;

// A list of integers in a tensor of any shape with one axis longer than 1.
struct Integers {
  TensorId id = kNone;
  DType type = DType::i32;
  int64_t stride = 0, count = 0;

  Integers() = default;
  Integers(const Anchored& a, size_t slot) {
    if (!a.has(slot)) return;
    const Tensor& t = a.in(slot);
    id = a.node().in[slot], type = t.dtype, count = t.numel();
    for (int i = 0; i < t.rank(); ++i)
      if (t.dims[i] != 1) stride = t.strides[i];
  }
  int64_t operator()(void* const* tensors, int64_t i) const { return load<int64_t>(type, tensors[id], i * stride); }
};

// Calls f(first, end, expert) for each range of rows.
template <class F>
void each_range(void* const* tensors, const Integers& offsets, int64_t rows, int64_t experts, const F& f) {
  for (int64_t i = 0; i < offsets.count; ++i) {
    int64_t first = std::max<int64_t>(0, offsets(tensors, i));
    int64_t end = i + 1 < offsets.count ? std::min(rows, offsets(tensors, i + 1)) : rows;
    if (first < end) f(first, end, i % experts);
  }
}

std::byte* moved(void* base, DType type, int64_t elements) {
  return static_cast<std::byte*>(base) + byte_size(type, elements);
}

// Rows of the tokens in the order of a list; -1 stands for a row of zeros.
template <class T>
class ListedRows : public Operand<T> {
 public:
  ListedRows(const Tensor& t) : type_(t.dtype), stride_(t.strides[1]), inner_(t.strides[2]) {}
  DType type() const override { return type_; }
  int64_t slots() const override { return 1; }
  int64_t slot(int64_t) const override { return 0; }
  void pack(void* const* table, int64_t, int64_t first, int64_t n, int64_t from, int64_t depth,
            const Panels<T>& to) const override {
    constexpr int64_t kRun = 256, kMaxWidth = 64;
    T buffer[kMaxWidth * kRun];
    const auto* rows = static_cast<const int64_t*>(table[kRows]) + first;
    for (int64_t i = 0; i < n; i += to.width)
      for (int64_t k = 0; k < depth; k += kRun) {
        int64_t count = std::min(to.width, n - i), run = std::min(kRun, depth - k);
        for (int64_t j = 0; j < count; ++j) {
          if (rows[i + j] < 0)
            std::fill_n(buffer + j * kRun, run, T(0));
          else
            kernels().load(type_, kLane<T>, table[kLeft], rows[i + j] * stride_ + (from + k) * inner_, inner_,
                           buffer + j * kRun, run);
        }
        tile_of<T>().transpose(count, run, buffer, kRun, to.place(i, k), to.width);
      }
  }

 private:
  DType type_;
  int64_t stride_, inner_;
};

Frame rows_frame() { return {{}, {0, 1}, {2}}; }

template <class T>
class MoeStep : public Step {
 public:
  MoeStep(const Anchored& a, int threads)
      : token_(a.in(kToken)),
        weight_(a.in(kWeight)),
        token_id_(a.node().in[kToken]),
        weight_id_(a.node().in[kWeight]),
        offsets_(a, kOffset),
        index_(a, kIndex),
        ks_(a, kKs),
        options_(attrs<tessera::MoeOptions>(a.node())),
        shape_{1, a.out().dims[1], a.out().dims[2], token_.dims[2]},
        epilogue_(a.region, a.anchor, a.epilogue, kType<T>, {}, rows_frame().order()),
        left_(token_),
        right_(kRight, weight_.dtype, {}, {}, {}, Axes(weight_.dims[2], weight_.strides[2]),
               Axes(weight_.dims[1], weight_.strides[1])),
        product_(shape_, left_, right_,
                 {epilogue_.scratch_bytes(), epilogue_.whole_rows(), ProductOptions::automatic, threads}) {}

  size_t workspace_bytes() const override { return lists_bytes() + zeros_bytes() + product_.workspace_bytes(); }

  void run(const StepArgs& args) const override {
    auto* from = reinterpret_cast<int64_t*>(args.workspace);
    int64_t *to = from + shape_.rows, *writer = to + shape_.rows;
    route(args.tensors, from, to, writer);
    std::byte* scratch = args.workspace + lists_bytes() + zeros_bytes();
    each_range(args.tensors, offsets_, shape_.rows, weight_.dims[0], [&](int64_t first, int64_t end, int64_t expert) {
      void* table[] = {args.tensors[token_id_],
                       moved(args.tensors[weight_id_], weight_.dtype, expert * weight_.strides[0]), from + first};
      ProductShape shape = shape_;
      shape.rows = end - first;
      product_.run(shape, table, scratch, Rows(*this, args.tensors, first, to, writer));
    });
    finish_rest(args, writer, scratch);
  }

 private:
  // A finished tile: rows of a range, each to its place.
  class Rows : public Result<T> {
   public:
    Rows(const MoeStep& s, void* const* tensors, int64_t first, const int64_t* to, const int64_t* writer)
        : s_(s), tensors_(tensors), first_(first), to_(to), writer_(writer) {}
    bool place(void* const*, ResultTile<T>&) const override { return false; }
    int64_t depth(void* const*, int64_t, int64_t depth) const override { return depth; }
    void finish(void* const*, const ResultTile<T>& t, std::byte* scratch) const override {
      for (int64_t i = 0; i < t.rows; ++i) {
        int64_t row = first_ + t.row + i, to = to_[row];
        if (to < 0 || writer_[to] != row) continue;
        s_.epilogue_.run(tensors_, to * s_.shape_.columns + t.column, t.columns, t.at + i * t.stride, scratch);
      }
    }

   private:
    const MoeStep& s_;
    void* const* tensors_;
    int64_t first_;
    const int64_t *to_, *writer_;
  };

  size_t lists_bytes() const { return (static_cast<size_t>(shape_.rows) * 24 + 255) / 256 * 256; }
  size_t zeros_bytes() const { return (static_cast<size_t>(shape_.columns) * sizeof(T) + 255) / 256 * 256; }

  // For each row of the ranges: which token it reads, which row it writes (-1: none); for each row of the result: the
  // last one that writes it.
  void route(void* const* tensors, int64_t* from, int64_t* to, int64_t* writer) const {
    std::fill_n(writer, shape_.rows, -1);
    for (int64_t row = 0; row < shape_.rows; ++row) {
      from[row] = options_.mode == MoeMode::gather ? index_(tensors, row) : row;
      to[row] = row;
      if (options_.mode == MoeMode::scatter) {
        int64_t k = ks_.id == kNone ? 0 : ks_(tensors, row), place = index_(tensors, row);
        bool valid = place >= 0 && place < shape_.rows && k >= 0 && k < options_.top_k;
        to[row] = valid ? place * options_.top_k + k : -1;
      }
      if (from[row] < 0 || from[row] >= token_.dims[1] || to[row] >= shape_.rows) from[row] = to[row] = -1;
    }
    each_range(tensors, offsets_, shape_.rows, weight_.dims[0], [&](int64_t first, int64_t end, int64_t) {
      for (int64_t row = first; row < end; ++row)
        if (to[row] >= 0) writer[to[row]] = row;
    });
  }

  // Rows that nothing reached: the product is 0.
  void finish_rest(const StepArgs& args, const int64_t* writer, std::byte* scratch) const {
    T* zeros = reinterpret_cast<T*>(args.workspace + lists_bytes());
    std::fill_n(zeros, shape_.columns, T(0));
    for (int64_t row = 0; row < shape_.rows; ++row)
      if (writer[row] < 0) epilogue_.run(args.tensors, row * shape_.columns, shape_.columns, zeros, scratch);
  }

  Tensor token_, weight_;
  TensorId token_id_, weight_id_;
  Integers offsets_, index_, ks_;
  tessera::MoeOptions options_;
  ProductShape shape_;
  Epilogue epilogue_;
  ListedRows<T> left_;
  StridedOperand<T> right_;
  Product<T> product_;
};

template <class T>
class MoeBwdStep : public Step {
 public:
  MoeBwdStep(const Anchored& a, int threads)
      : dy_(a.in(bwd::kDoutput)),
        token_(a.in(bwd::kToken)),
        dy_id_(a.node().in[bwd::kDoutput]),
        token_id_(a.node().in[bwd::kToken]),
        offsets_(a, kOffset),
        experts_(a.out().dims[0]),
        threads_(threads),
        shape_{1, token_.dims[2], dy_.dims[2], token_.dims[1]},
        epilogue_(a.region, a.anchor, a.epilogue, kType<T>, {}, rows_frame().order()),
        left_(kLeft, token_.dtype, {}, {}, {}, Axes(token_.dims[2], token_.strides[2]),
              Axes(token_.dims[1], token_.strides[1])),
        right_(kRight, dy_.dtype, {}, {}, {}, Axes(dy_.dims[2], dy_.strides[2]), Axes(dy_.dims[1], dy_.strides[1])),
        product_(shape_, left_, right_, {.threads = threads}) {}

  size_t workspace_bytes() const override { return sums_bytes() + scratch_bytes(); }

  void run(const StepArgs& args) const override {
    T* sums = reinterpret_cast<T*>(args.workspace);
    std::byte* scratch = args.workspace + sums_bytes();
    int64_t each = shape_.rows * shape_.columns;
    std::fill_n(sums, experts_ * each, T(0));
    each_range(args.tensors, offsets_, shape_.depth, experts_, [&](int64_t first, int64_t end, int64_t expert) {
      void* table[] = {moved(args.tensors[token_id_], token_.dtype, first * token_.strides[1]),
                       moved(args.tensors[dy_id_], dy_.dtype, first * dy_.strides[1])};
      ProductShape shape = shape_;
      shape.depth = end - first;
      product_.run(shape, table, scratch, Sum(sums + expert * each, shape_.columns));
    });
    if (each == 0) return;
    parallel_for(experts_ * shape_.rows, 64, threads_, [&](int64_t first, int64_t last, int worker) {
      epilogue_.run(args.tensors, first * shape_.columns, (last - first) * shape_.columns,
                    sums + first * shape_.columns, scratch + static_cast<size_t>(worker) * epilogue_.scratch_bytes());
    });
  }

 private:
  class Sum : public Result<T> {
   public:
    Sum(T* to, int64_t stride) : to_(to), stride_(stride) {}
    bool place(void* const*, ResultTile<T>& t) const override {
      t.at = to_ + t.row * stride_ + t.column, t.stride = stride_, t.add = true;
      return true;
    }
    int64_t depth(void* const*, int64_t, int64_t depth) const override { return depth; }
    void finish(void* const*, const ResultTile<T>&, std::byte*) const override {}

   private:
    T* to_;
    int64_t stride_;
  };

  size_t sums_bytes() const {
    return (static_cast<size_t>(experts_ * shape_.rows * shape_.columns) * sizeof(T) + 255) / 256 * 256;
  }
  size_t scratch_bytes() const {
    return std::max(product_.workspace_bytes(), epilogue_.scratch_bytes() * static_cast<size_t>(threads_));
  }

  Tensor dy_, token_;
  TensorId dy_id_, token_id_;
  Integers offsets_;
  int64_t experts_;
  int threads_;
  ProductShape shape_;
  Epilogue epilogue_;
  StridedOperand<T> left_, right_;
  Product<T> product_;
};

// Elements move by whole rows: their type must have whole bytes.
Reason check_rows(const Anchored& a) {
  for (size_t slot : {size_t{0}, size_t{1}})
    if (info(a.in(slot).dtype).bits < 8)
      return Reason::no("input ", describe(a.in(slot)), " packs several elements into a byte");
  if (Reason why = check_types(a, 0, 1); !why) return why;
  return check_frame(a, rows_frame());
}

}  // namespace

Reason check_moe(const Anchored& a) { return check_rows(a); }
Packing moe_packing(const Anchored& a) {
  return needs_wide(a, kToken, kWeight, a.in(kToken).dims[2]) ? Packing::f64 : Packing::f32;
}
std::unique_ptr<Step> build_moe(const Anchored& a) {
  if (moe_packing(a) == Packing::f64) return std::make_unique<MoeStep<double>>(a, thread_count());
  return std::make_unique<MoeStep<float>>(a, thread_count());
}

Reason check_moe_bwd(const Anchored& a) { return check_rows(a); }
Packing moe_bwd_packing(const Anchored& a) {
  return needs_wide(a, bwd::kDoutput, bwd::kToken, a.in(bwd::kToken).dims[1]) ? Packing::f64 : Packing::f32;
}
std::unique_ptr<Step> build_moe_bwd(const Anchored& a) {
  if (moe_bwd_packing(a) == Packing::f64) return std::make_unique<MoeBwdStep<double>>(a, thread_count());
  return std::make_unique<MoeBwdStep<float>>(a, thread_count());
}

}  // namespace tsr::cpu
