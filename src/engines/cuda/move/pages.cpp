// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/move/pages.hpp"

#include <algorithm>
#include <optional>

#include "engines/cuda/move/copy.hpp"
#include "engines/cuda/toolkit/binder.hpp"
#include "engines/cuda/toolkit/tensors.hpp"
#include "graph/op.hpp"
#include "graph/ops/slots.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {
namespace {

using namespace slots::paged_load;

constexpr int kThreads = 256, kUnroll = 4;
constexpr int64_t kSmall = 16;
constexpr int64_t kWideIndex = 2000000000;

// The step between neighbours of a tensor that holds one number for each batch, if there is one step.
std::optional<int64_t> single_step(const Tensor& t) {
  int64_t step = 0, size = 1;
  for (int i = t.rank() - 1; i >= 0; --i) {
    if (t.dims[i] == 1) continue;
    if (size == 1) step = t.strides[i];
    if (size > 1 && t.strides[i] != size * step) return std::nullopt;
    size *= t.dims[i];
  }
  return step;
}

class PagesStep : public Step {
 public:
  PagesStep(const Graph& g, const Node& n, const Device& d) {
    const Tensor &x = g.tensor(n.in[kContainer]), &y = g.tensor(n.out[0]);
    bound_.pointer(args_.from, n.in[kContainer]);
    bound_.pointer(args_.to, n.out[0]);
    bool transposed = attrs<tessera::PagedLoadOptions>(n).transposed;
    int row = transposed ? 3 : 2, column = transposed ? 2 : 3;
    args_.pages = x.dims[0];
    args_.from_page = x.strides[0], args_.from_head = x.strides[1], args_.from_row = x.strides[2];
    args_.from_column = x.strides[3];
    args_.to_batch = y.strides[0], args_.to_head = y.strides[1];
    args_.to_row = y.strides[row], args_.to_column = y.strides[column];
    args_.rows = dev::make_divisor(std::max<int64_t>(1, y.dims[row]));
    args_.columns = dev::make_divisor(std::max<int64_t>(1, y.dims[column]));
    args_.heads = dev::make_divisor(std::max<int64_t>(1, y.dims[1]));
    args_.page_rows = dev::make_divisor(std::max<int64_t>(1, x.dims[2]));
    args_.count = y.numel();
    set_index(g, n.in[kTable], args_.table);
    args_.table.steps[0] = g.tensor(n.in[kTable]).strides[0], args_.table.steps[1] = g.tensor(n.in[kTable]).strides[2];
    args_.lengths.value = y.dims[row];
    if (n.in.size() > kSeqLen && n.in[kSeqLen] != kNone) {
      set_index(g, n.in[kSeqLen], args_.lengths);
      args_.lengths.steps[0] = *single_step(g.tensor(n.in[kSeqLen]));
    }
    if (args_.count == 0) return;
    if (x.strides[3] == 1 && y.strides[row] == 1 && y.strides[column] != 1 && y.dims[row] >= kSmall &&
        y.dims[column] >= kSmall)
      use_tiles(x, y, d);
    else
      use_words(x, y, d);
  }

  void run(const StepArgs& s) const override {
    if (kernel_) kernel_->launch(grid_, s.stream, bound_.filled(s));
  }
  int kernels() const override { return kernel_ ? 1 : 0; }

 private:
  void set_index(const Graph& g, TensorId id, dev::IndexArg& a) {
    const Tensor& t = g.tensor(id);
    a.wide = t.dtype == DType::i64;
    if (t.on_host())
      bound_.integer(a.value, t.dtype, id);
    else
      bound_.pointer(a.data, id);
  }

  void use_words(const Tensor& x, const Tensor& y, const Device& d) {
    int64_t bytes = info(y.dtype).bits / 8, word = 1;
    if (args_.from_column == 1 && args_.to_column == 1) {
      word = std::max<int64_t>(1, std::min(aligned_bytes(x, 0), aligned_bytes(y, 0)) / bytes);
      dev::i64* steps[] = {&args_.from_page, &args_.from_head, &args_.from_row,
                           &args_.to_batch,  &args_.to_head,   &args_.to_row};
      word = common_power(word, {args_.columns.value});
      for (const dev::i64* s : steps) word = common_power(word, {*s});
      for (dev::i64* s : steps) *s /= word;
      args_.columns = dev::make_divisor(args_.columns.value / word);
      args_.count /= word;
    }
    grid_.blocks = ceil_div(args_.count, int64_t{kThreads} * kUnroll);
    use(cat("pages<", word_type(word * bytes), ", ", kUnroll, ", ", args_.count > kWideIndex ? "i64" : "i32", ">"), d);
  }

  void use_tiles(const Tensor& x, const Tensor& y, const Device& d) {
    int64_t bytes = info(y.dtype).bits / 8;
    auto side = [&](const Tensor& t, int64_t run, std::initializer_list<int64_t> steps) {
      int64_t aligned = std::max<int64_t>(1, aligned_bytes(t, 0) / bytes);
      return TileSide{bytes, run, common_power(common_power(aligned, {run}), steps)};
    };
    TileChoice tile(side(x, args_.columns.value, {args_.from_page, args_.from_head, args_.from_row}),
                    side(y, args_.rows.value, {args_.to_batch, args_.to_head, args_.to_column}));
    args_.from_words = tile.from_words, args_.to_words = tile.to_words;
    args_.down = dev::make_divisor(ceil_div(args_.rows.value, tile.rows));
    args_.across = dev::make_divisor(ceil_div(args_.columns.value, tile.columns));
    grid_.blocks = y.dims[0] * args_.heads.value * args_.down.value * args_.across.value;
    grid_.shared_bytes = tile.shared_bytes;
    use(cat("page_tiles<", word_type(bytes), ", ", tile.square, ", ", tile.down, ">"), d);
  }

  void use(const std::string& body, const Device& d) {
    Program p;
    p.include = "engines/cuda/move/pages.cuh";
    p.generated = "using namespace tsr::dev;";
    p.args = "PageArgs";
    p.body = body;
    p.threads = grid_.threads = kThreads;
    kernel_ = get_kernel(p, d);
  }

  KernelArgs<dev::PageArgs> bound_;
  dev::PageArgs& args_ = bound_.args;
  Grid grid_;
  std::shared_ptr<const Kernel> kernel_;
};

}  // namespace

Reason check_pages(const Graph& g, const Node& n) {
  const Tensor &x = g.tensor(n.in[kContainer]), &y = g.tensor(n.out[0]);
  for (const Tensor* t : {&x, &y}) {
    if (t->on_host()) return Reason::no("tensor ", describe(*t), " is a number that travels with the launch");
    if (t->ragged != kNone) return Reason::no("tensor ", describe(*t), " is ragged");
    if (info(t->dtype).bits < 8) return Reason::no("tensor ", describe(*t), " packs elements into bytes");
    if (info(t->dtype).vector > 1) return Reason::no("tensor ", describe(*t), " is vectorised");
    if (Reason why = check_alignment(*t); !why) return why;
    if (t->dtype != x.dtype)
      return Reason::no("tensor ", describe(*t), " has another type than ", describe(x),
                        " and pages are not converted");
  }
  constexpr int64_t kMostRows = 2147483647;
  int64_t rows = y.dims[attrs<tessera::PagedLoadOptions>(n).transposed ? 3 : 2];
  if (rows > kMostRows) return Reason::no("tensor ", describe(y), " has ", rows, " positions; at most ", kMostRows);
  if (n.in.size() > kSeqLen && n.in[kSeqLen] != kNone && !single_step(g.tensor(n.in[kSeqLen])))
    return Reason::no("tensor ", describe(g.tensor(n.in[kSeqLen])), " does not lie in memory evenly");
  return Reason::yes();
}

std::unique_ptr<Step> make_pages_step(const Graph& g, const Node& n, const Device& d) {
  return std::make_unique<PagesStep>(g, n, d);
}

}  // namespace tsr::cuda
