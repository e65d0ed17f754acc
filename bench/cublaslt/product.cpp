// SPDX-License-Identifier: Apache-2.0
#include "cublaslt/product.hpp"

#include <limits>
#include <utility>

#include "base/error.hpp"
#include "graph/op.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/rounding.hpp"
#include "graph/ops/slots.hpp"

namespace cublaslt {
namespace {

using tsr::DType;
using tsr::kNone;
using tsr::NodeId;
using tsr::TensorId;
using Mode = tessera::PointwiseMode;

struct Refusal {
  std::string text;
};
template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw Refusal{tsr::cat(parts...)};
}

Type type_of(const tsr::Tensor& t) {
  switch (t.dtype) {
    case DType::f64:
      return Type::f64;
    case DType::f32:
      return Type::f32;
    case DType::f16:
      return Type::f16;
    case DType::bf16:
      return Type::bf16;
    case DType::e4m3:
      return Type::e4m3;
    case DType::e5m2:
      return Type::e5m2;
    case DType::i8:
      return Type::i8;
    case DType::i32:
      return Type::i32;
    default:
      refuse("'", t.name, "' is ", tsr::name(t.dtype));
  }
}

bool is_fp8(Type t) { return t == Type::e4m3 || t == Type::e5m2; }

// Elements from one batch to the next, where the batches of a result lie so; 0: all have the same.
int64_t batch_stride(const tsr::Tensor& t, const tsr::Dims& result) {
  int64_t step = 0, inner = 1;  // of the innermost dimension of batches, and batches inside the next one
  for (int i = t.rank() - 3; i >= 0; --i) {
    if (result[i] == 1) continue;
    int64_t stride = t.dims[i] == 1 ? 0 : t.strides[i];
    if (inner == 1) step = stride;
    if (stride != step * inner) refuse("batches of '", t.name, "' are not equally far apart");
    inner *= result[i];
  }
  return step;
}

// The transposed matrix of a tensor.
Matrix transposed(const tsr::Tensor& t, const tsr::Dims& result) {
  int r = t.rank() - 2, c = r + 1;
  Matrix m{.uid = t.uid, .type = type_of(t), .batch_stride = batch_stride(t, result)};
  auto lies = [&](int along, int across) {
    if ((t.strides[along] != 1 && t.dims[along] > 1) || (t.strides[across] < t.dims[along] && t.dims[across] > 1))
      return false;
    m.rows = t.dims[along], m.columns = t.dims[across];
    m.leading = t.dims[across] > 1 ? t.strides[across] : t.dims[along];
    return true;
  };
  if (lies(c, r)) return m;
  m.turned = Turned::yes;
  if (!lies(r, c)) refuse("neither rows nor columns of '", t.name, "' are neighbours in memory");
  return m;
}

class Reader {
 public:
  explicit Reader(const tsr::Graph& g) : g_(g) {}

  Product read() {
    NodeId product = kNone;
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      if (g_.node(n).op != &tsr::ops::matmul) continue;
      if (product != kNone) refuse("several products");
      product = n;
    }
    if (product == kNone) refuse("no product of matrices");
    read_product(g_.node(product));
    TensorId last = g_.node(product).out[0];
    int nodes = 1;
    for (; !g_.tensor(last).stored; ++nodes) {
      std::vector<NodeId> readers = g_.consumers(last);
      if (readers.size() != 1) refuse("'", g_.tensor(last).name, "' is read ", readers.size(), " times");
      follow(last, g_.node(readers[0]));
      last = g_.node(readers[0]).out[0];
    }
    if (nodes != g_.node_count()) refuse("more than a product and what follows it");
    p_.d = transposed(g_.tensor(last), g_.tensor(last).dims);
    if (p_.d.turned == Turned::yes) turn(g_.tensor(last));
    if (p_.c && p_.c->turned == Turned::yes) refuse("the sum's operand lies otherwise than the result");
    for (int i = 0; i < g_.tensor(last).rank() - 2; ++i) p_.batches *= g_.tensor(last).dims[i];
    return p_;
  }

 private:
  // The result lies column by column: it is computed as it is, of operands as they are.
  void turn(const tsr::Tensor& result) {
    if (p_.bias) refuse("the result '", result.name, "' lies column by column, and a bias is for columns");
    std::swap(p_.a, p_.b);
    for (Matrix* m : {&p_.a, &p_.b, &p_.d, p_.c ? &*p_.c : nullptr})
      if (m) m->turned = m->turned == Turned::yes ? Turned::no : Turned::yes;
  }

  const tsr::Tensor& stored(TensorId id) const {
    const tsr::Tensor& t = g_.tensor(id);
    if (g_.producer(id) != kNone || t.on_host()) refuse("'", t.name, "' is not in the GPU's memory beforehand");
    return t;
  }

  void read_product(const tsr::Node& n) {
    for (int i : {tsr::slots::matmul::kM, tsr::slots::matmul::kN, tsr::slots::matmul::kK})
      if (tsr::slot(n.in, static_cast<size_t>(i)) != kNone) refuse("sizes for each batch");
    const tsr::Dims& result = g_.tensor(n.out[0]).dims;
    p_.a = transposed(stored(n.in[tsr::slots::matmul::kB]), result);
    p_.b = transposed(stored(n.in[tsr::slots::matmul::kA]), result);
    p_.fast_sums = is_fp8(p_.a.type) && allows_fast_sums(n);
    switch (p_.a.type) {
      case Type::f64:
        p_.compute = Compute::f64, p_.scale_type = Type::f64;
        break;
      case Type::i8:
        p_.compute = Compute::i32, p_.scale_type = Type::i32;
        break;
      case Type::f32:
        p_.compute = allows_tf32(n) ? Compute::tf32 : Compute::f32;
        break;
      default:
        break;
    }
  }

  bool activated() const { return (p_.epilogue & (kRelu | kGelu)) != 0; }

  void activate(uint32_t with, TensorId x) {
    if (activated()) refuse("work behind an activation, '", g_.tensor(x).name, "'");
    p_.epilogue = with | (p_.bias ? uint32_t{kBias} : 0);
  }

  void follow(TensorId x, const tsr::Node& n) {
    if (n.op != &tsr::ops::pointwise) refuse(n.op->name, " behind the product");
    const auto& o = tsr::attrs<tessera::PointwiseOptions>(n);
    bool bounded = o.lower != 0 || o.upper != std::numeric_limits<double>::infinity() || o.slope != 0;
    if (o.alpha1 != 1 || o.alpha2 != 1) refuse("factors of ", spelling(n));
    TensorId other = n.in.size() < 2 ? kNone : n.in[n.in[0] == x ? 1 : 0];
    if (o.mode == Mode::identity) return;
    if (o.mode == Mode::relu && !bounded) return activate(kRelu, x);
    if (o.mode == Mode::gelu_tanh) return activate(kGelu, x);
    if (activated()) refuse("work behind an activation, ", spelling(n));
    if (o.mode == Mode::mul) return factor(stored(other));
    if (o.mode != Mode::add || other == x) refuse(spelling(n), " behind the product");
    add(stored(other), g_.tensor(x).dims);
  }

  void factor(const tsr::Tensor& t) {
    if (!is_fp8(p_.a.type) || t.numel() != 1 || t.dtype != DType::f32) refuse("a factor, '", t.name, "'");
    if (p_.a_scale || p_.bias || p_.c) refuse("a factor behind other work, '", t.name, "'");
    p_.a_scale = t.uid;
  }

  void add(const tsr::Tensor& t, const tsr::Dims& result) {
    if (t.dims == result) {
      if (p_.c) refuse("two sums, '", t.name, "'");
      p_.c = transposed(t, result);
    } else if (t.numel() == result[result.size() - 1] && t.dims[t.rank() - 1] == t.numel()) {
      if (p_.bias) refuse("two biases, '", t.name, "'");
      p_.bias = t.uid, p_.bias_type = type_of(t), p_.epilogue = kBias;
    } else {
      refuse("a sum with '", t.name, "', which is neither a row nor of the result's sizes");
    }
  }

  const tsr::Graph& g_;
  Product p_;
};

}  // namespace

Description from_graph(const tsr::Graph& g) {
  try {
    return {Reader(g).read(), ""};
  } catch (const Refusal& r) {
    return {{}, "cuBLASLt: " + r.text};
  }
}

}  // namespace cublaslt
