// SPDX-License-Identifier: Apache-2.0
// Matrix products. Batch dimensions are merged as far as their strides allow; where all batches share b they become
// rows of one product. A result that lies column by column is computed as the transposed product.
#include <algorithm>
#include <map>

#include "engines/cpu/onednn/chain.hpp"
#include "engines/cpu/onednn/families.hpp"
#include "graph/op.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::onednn {
namespace {

using namespace slots::matmul;
bool handles(const Node& n) { return n.op == &ops::matmul; }

// Of a value for each column oneDNN 2.6 asks where it lies by code that ends the process, or slowly, unless rows and
// batches of the result follow one another in the order of its dimensions.
Reason check_columns(const Graph& g, const Chain& c) {
  const Tensor& y = g.tensor(c.result);
  int64_t inner = 1;
  bool in_order = true;
  for (int i = y.rank(); i-- > 0;) {
    if (y.dims[i] == 1) continue;
    in_order = in_order && y.strides[i] >= inner;
    inner = y.strides[i] * y.dims[i];
  }
  if (in_order) return Reason::yes();
  for (const PostOp& p : c.ops)
    if (p.operand != kNone && spread(g.tensor(p.operand), y.dims, y.rank() - 1) == Spread::channel)
      return Reason::no("input ", describe(g.tensor(p.operand)), " has a value for each column of ", describe(y),
                        ", whose dimensions are not in order in memory");
  return Reason::yes();
}

Reason check(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  for (size_t i = kM; i < n.in.size(); ++i)
    if (n.in[i] != kNone) return Reason::no("input ", describe(g.tensor(n.in[i])), " gives sizes for each batch");
  Chain c;
  if (Reason why = read_chain(r, g.tensor(n.out[0]).rank() - 1, {}, c); !why) return why;
  if (Reason why = check_columns(g, c); !why) return why;
  for (TensorId t : {n.in[kA], n.in[kB], c.result})
    if (Reason why = check_tensor(g.tensor(t)); !why) return why;
  return check_product(n, g.tensor(n.in[kA]), g.tensor(n.in[kB]), g.tensor(n.in[kA]).dims.back());
}

double seconds(const Region& r, const Device& d) { return product_seconds(r, d, region_bytes(r)); }

// Sizes and strides of one operand: batches, then rows and columns.
struct Matrix {
  memory::dims dims, strides;
  size_t rank() const { return dims.size(); }
};

Desc describe_matrix(const Matrix& m, DType type) { return Desc(m.dims, *native_type(type), m.strides); }

// A matrix that oneDNN's kernels read: one of its two strides is 1, the other long enough.
bool is_regular(const Tensor& t) {
  int r = t.rank();
  int64_t rows = t.dims[r - 2], columns = t.dims[r - 1], down = t.strides[r - 2], across = t.strides[r - 1];
  for (int i = 0; i < r - 2; ++i)
    if (t.dims[i] > 1 && t.strides[i] <= 0) return false;
  bool by_row = (columns == 1 || across == 1) && (rows == 1 || down >= columns);
  bool by_column = (rows == 1 || down == 1) && (columns == 1 || across >= rows);
  return by_row || by_column;
}

// All operands of a product, over the same batches.
class Matrices {
 public:
  // `whole` are tensors of the result's sizes, the result first.
  Matrices(const Tensor& a, const Tensor& b, const std::vector<Tensor>& whole) {
    const Dims& c = whole[0].dims;
    all_.resize(2 + whole.size());
    for (int i = 0; i + 2 < c.size(); ++i) add_batch(a, b, whole, i);
    auto add = [](Matrix& m, const Tensor& t, int i) {
      m.dims.push_back(t.dims[i]);
      m.strides.push_back(t.strides[i]);
    };
    for (int i = c.size() - 2; i < c.size(); ++i) {
      add(all_[0], a, i);
      add(all_[1], b, i);
      for (size_t k = 0; k < whole.size(); ++k) add(all_[2 + k], whole[k], i);
    }
    merge_batches();
    batches_to_rows();
    for (Matrix& m : all_) settle_strides(m);
  }

  const Matrix& a() const { return all_[0]; }
  const Matrix& b() const { return all_[1]; }
  const Matrix& c() const { return all_[2]; }
  const Matrix& whole(size_t i) const { return all_[2 + i]; }

  void transpose() {
    for (Matrix& m : all_) {
      std::swap(m.dims[m.rank() - 1], m.dims[m.rank() - 2]);
      std::swap(m.strides[m.rank() - 1], m.strides[m.rank() - 2]);
    }
    std::swap(all_[0], all_[1]);
  }

 private:
  // A batch size that divides the other is shared by runs of it: two dimensions, one of them repeated.
  void add_batch(const Tensor& a, const Tensor& b, const std::vector<Tensor>& whole, int i) {
    int64_t size = whole[0].dims[i], groups = std::min(a.dims[i], b.dims[i]), run = size / groups;
    if (size == 1) return;
    auto add = [&](Matrix& m, const Tensor& t) {
      bool shared = t.dims[i] != size;
      m.dims.insert(m.dims.end(), {groups, shared ? 1 : run});
      m.strides.insert(m.strides.end(), {t.strides[i] * (shared ? 1 : run), t.strides[i]});
    };
    add(all_[0], a);
    add(all_[1], b);
    for (size_t k = 0; k < whole.size(); ++k) add(all_[2 + k], whole[k]);
  }

  // Dimension i and the next one are one dimension to everybody.
  bool can_merge(size_t i) const {
    return std::all_of(all_.begin(), all_.end(), [&](const Matrix& m) {
      bool none = m.dims[i] == 1 && m.dims[i + 1] == 1,
           full = m.dims[i] == c().dims[i] && m.dims[i + 1] == c().dims[i + 1];
      return none || (full && m.strides[i] == m.strides[i + 1] * m.dims[i + 1]);
    });
  }

  void erase(size_t i) {
    for (Matrix& m : all_) {
      m.dims.erase(m.dims.begin() + static_cast<std::ptrdiff_t>(i));
      m.strides.erase(m.strides.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void merge_batches() {
    for (size_t i = 0; i + 2 < c().rank();) {
      if (c().dims[i] == 1)
        erase(i);
      else
        ++i;
    }
    for (size_t i = 0; i + 3 < c().rank();) {
      if (!can_merge(i)) {
        ++i;
        continue;
      }
      for (Matrix& m : all_) m.dims[i + 1] *= m.dims[i];
      erase(i);
    }
  }

  void batches_to_rows() {
    if (c().rank() != 3 || b().dims[0] != 1) return;
    for (size_t k = 0; k < all_.size(); ++k)
      if (k != 1 && all_[k].strides[0] != all_[k].dims[1] * all_[k].strides[1]) return;
    for (size_t k = 0; k < all_.size(); ++k)
      if (k != 1) all_[k].dims[1] *= all_[k].dims[0];
    erase(0);
  }

  // Strides of sizes that are 1 are free; oneDNN recognises its layouts by all strides.
  static void settle_strides(Matrix& m) {
    size_t r = m.rank(), row = r - 2, column = r - 1;
    bool by_row =
        (m.dims[column] == 1 || m.strides[column] == 1) && (m.dims[row] == 1 || m.strides[row] >= m.dims[column]);
    if (m.dims[column] == 1) m.strides[column] = by_row ? 1 : std::max<int64_t>(1, m.dims[row]);
    if (m.dims[row] == 1) m.strides[row] = by_row ? m.dims[column] : 1;
    int64_t outer = std::max(m.dims[row] * m.strides[row], m.dims[column] * m.strides[column]);
    for (size_t i = row; i-- > 0;) {
      if (m.dims[i] == 1) m.strides[i] = outer;
      outer = std::max(outer, m.dims[i] * m.strides[i]);
    }
  }

  std::vector<Matrix> all_;  // a, b, c and what has c's sizes
};

class Builder {
 public:
  explicit Builder(const Region& r) : g_(*r.graph), step_(std::make_unique<Sequence>(r)) {
    read_chain(r, g_.tensor(g_.node(r.nodes[0]).out[0]).rank() - 1, {}, chain_);
  }

  std::unique_ptr<Step> build() {
    const Node& n = *chain_.anchor;
    TensorId a = n.in[kA], b = n.in[kB], c = chain_.result;
    ProductTypes types = product_types(n, g_.tensor(a), g_.tensor(b), g_.tensor(c), has_ops());
    a_ = load_side(a, types.a);
    b_ = load_side(b, types.b);
    c_ = result_target(c, types);
    load_operands();
    make_call();
    store(*step_, g_, c, c_);
    return std::move(step_);
  }

 private:
  bool has_ops() const { return !chain_.ops.empty() || chain_.bias != kNone; }

  // Frozen tensors may be brought into a layout of oneDNN's: from one without gaps, as it lacks others for integers.
  Operand load_side(TensorId t, DType type) {
    const Tensor& x = g_.tensor(t);
    return load(*step_, g_, t, type, x.frozen || !is_regular(x));
  }

  // The right side of oneDNN's integer products is signed: u8 stays on the left, so its results are made by rows.
  Operand result_target(TensorId id, const ProductTypes& types) {
    const Tensor& t = g_.tensor(id);
    if (types.a != DType::u8 || t.strides.back() == 1) return target(*step_, g_, id, types.result, !is_regular(t));
    Tensor rows = packed(t, types.result);
    rows.strides = packed_strides(t.dims);
    return {rows, step_->reserve(static_cast<size_t>(rows.bytes()))};
  }

  void load_operands() {
    const Dims& result = c_.tensor.dims;
    whole_.push_back(c_.tensor);
    for (const PostOp& p : chain_.ops) {
      if (p.operand == kNone || operands_.count(p.operand)) continue;
      bool full = spread(g_.tensor(p.operand), result, result.size() - 1) == Spread::full;
      DType type = g_.tensor(p.operand).dtype == DType::bf16 ? DType::bf16 : DType::f32;
      // Of operands that repeat, oneDNN 2.6 reads neighbouring values, whatever strides it is told.
      Operand o = load(*step_, g_, p.operand, type, !full);
      if (full) whole_index_[p.operand] = whole_.size(), whole_.push_back(o.tensor);
      operands_[p.operand] = o;
    }
  }

  // A row of channel values, or a single one, over the rank of the product.
  Desc row_desc(const Operand& o, size_t rank) const {
    memory::dims dims(rank, 1), strides(rank, o.tensor.numel());
    dims[rank - 1] = o.tensor.numel();
    strides[rank - 1] = 1;
    return Desc(dims, *native_type(o.tensor.dtype), strides);
  }

  void make_call() {
    Matrices m(a_.tensor, b_.tensor, whole_);
    bool rows_free = chain_.bias == kNone && operands_.size() + 1 == whole_.size();
    size_t rank = m.c().rank();
    bool by_column = m.c().strides[rank - 1] != 1 && m.c().strides[rank - 2] == 1;
    bool swapped = by_column && rows_free;
    if (swapped) m.transpose();
    const Operand &left = swapped ? b_ : a_, &right = swapped ? a_ : b_;

    Attached post = attach(chain_, [&](TensorId t) -> Arg {
      auto whole = whole_index_.find(t);
      const Operand& o = operands_.at(t);
      if (whole == whole_index_.end()) return {0, row_desc(o, rank), o.place};
      return {0, describe_matrix(m.whole(whole->second), o.tensor.dtype), o.place};
    });
    dnnl::primitive_attr attr = attributes(post.ops);
    Operand bias;
    Desc bias_desc;
    if (chain_.bias != kNone) {
      bool bf16 = a_.tensor.dtype == DType::bf16 && g_.tensor(chain_.bias).dtype == DType::bf16;
      bias = load(*step_, g_, chain_.bias, bf16 ? DType::bf16 : DType::f32, true);
      bias_desc = row_desc(bias, rank);
    }
    Desc a = describe_matrix(m.a(), left.tensor.dtype), b = describe_matrix(m.b(), right.tensor.dtype),
         c = describe_matrix(m.c(), c_.tensor.dtype);
    // A frozen b may take whatever layout oneDNN likes best: it is brought into it once.
    TensorId b_id = chain_.anchor->in[swapped ? kA : kB];
    bool free_layout = g_.tensor(b_id).frozen && rank == 2;
    Desc wanted = free_layout ? Desc(m.b().dims, *native_type(right.tensor.dtype), memory::format_tag::any) : b;
    Desc chosen = b;
    auto p = make_primitives(step_->threads(), [&](bool is_team) {
      auto d = describe_matmul(a, is_team ? wanted : chosen, bias_desc, c, attr);
      if (is_team && d) chosen = d->weights_desc();
      return d;
    });
    if (!p.team.get(true)) fail(Status::internal_error, "oneDNN refused a matrix product of ", describe(c_.tensor));
    Place b_place = right.place;
    if (chosen != b)
      b_place = step_->prepare(g_, b_id, chosen.get_size(),
                               [&](Place place) { step_->reorder(b, right.place, chosen, place); });
    std::vector<Arg> args = {
        {DNNL_ARG_SRC, a, left.place}, {DNNL_ARG_WEIGHTS, chosen, b_place}, {DNNL_ARG_DST, c, c_.place}};
    if (chain_.bias != kNone) args.push_back({DNNL_ARG_BIAS, bias_desc, bias.place});
    args.insert(args.end(), post.args.begin(), post.args.end());
    step_->call(p, std::move(args));
  }

  const Graph& g_;
  std::unique_ptr<Sequence> step_;
  Chain chain_;
  Operand a_, b_, c_;
  std::vector<Tensor> whole_;  // the result and operands of its sizes
  std::map<TensorId, size_t> whole_index_;
  std::map<TensorId, Operand> operands_;
};

std::unique_ptr<Step> build(const Region& r) { return Builder(r).build(); }

}  // namespace

const FamilyEntry kMatmul = {handles, check, seconds, build};

}  // namespace tsr::onednn
