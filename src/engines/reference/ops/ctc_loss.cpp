// SPDX-License-Identifier: Apache-2.0
// Forward and backward variables over the labels with blanks between them, all in log space.
#include <cmath>

#include "engines/reference/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {
namespace {

using tessera::CtcOptions;
using namespace slots::ctc_loss;

// log(exp(a) + exp(b)); -infinity stands for probability 0.
template <class R>
R log_add(R a, R b) {
  if (a == -INFINITY) return b;
  if (b == -INFINITY) return a;
  return a > b ? a + std::log1p(std::exp(b - a)) : b + std::log1p(std::exp(a - b));
}

// Logits [t,n,c] minus the log of the sum of their exponentials over c.
template <class R>
Array<R> log_softmax(const Array<R>& x) {
  Array<R> y(x.dims);
  int64_t classes = x.dims[2];
  for (int64_t first = 0; first < x.size(); first += classes) {
    R sum = -INFINITY;
    for (int64_t k = 0; k < classes; ++k) sum = log_add(sum, x[first + k]);
    for (int64_t k = 0; k < classes; ++k) y[first + k] = x[first + k] - sum;
  }
  return y;
}

// Labels of each sequence with a blank before, between and after them.
std::vector<Ints> extended_labels(const Array<int64_t>& labels, const Ints& lengths, int64_t blank, int64_t classes) {
  std::vector<Ints> all;
  int64_t next = 0, longest = labels.rank() == 2 ? labels.dims[1] : labels.size();
  for (size_t n = 0; n < lengths.size(); ++n) {
    int64_t first = labels.rank() == 2 ? static_cast<int64_t>(n) * longest : next;
    int64_t room = labels.rank() == 2 ? longest : labels.size() - next;
    require(lengths[n] >= 0 && lengths[n] <= room, "label_lengths[", n, "] = ", lengths[n], " is not in 0..", room);
    Ints extended = {blank};
    for (int64_t i = 0; i < lengths[n]; ++i) {
      int64_t label = labels[first + i];
      require(label >= 0 && label < classes && label != blank, "label ", label, " of sequence ", n,
              " is not one of 0..", classes - 1, " other than the blank ", blank);
      extended.insert(extended.end(), {label, blank});
    }
    next += lengths[n];
    all.push_back(std::move(extended));
  }
  return all;
}

// From state s - 2 a path may jump to s when that skips a blank between two different labels.
bool may_skip(const Ints& labels, size_t s) { return s >= 2 && s % 2 == 1 && labels[s] != labels[s - 2]; }

// Log-probabilities of being in state s at time t, [t, s]: `reach` having come there, its emission at t included;
// `leave` of what follows, emission at t excluded.
template <class R>
struct Lattice {
  std::vector<std::vector<R>> reach, leave;
  R log_probability = -INFINITY;
};

template <class R>
Lattice<R> make_lattice(const Array<R>& log_p, int64_t n, const Ints& labels, int64_t length) {
  size_t states = labels.size(), steps = static_cast<size_t>(length);
  Lattice<R> l;
  // Without any step only the empty label sequence is possible.
  if (steps == 0) {
    l.log_probability = states == 1 ? R(0) : R(-INFINITY);
    return l;
  }
  l.reach.assign(steps, std::vector<R>(states, -INFINITY));
  l.leave = l.reach;
  auto emit = [&](size_t t, size_t s) { return log_p.at(t, n, labels[s]); };
  for (size_t t = 0; t < steps; ++t)
    for (size_t s = 0; s < states; ++s) {
      R from = t == 0 ? (s < 2 ? R(0) : R(-INFINITY)) : l.reach[t - 1][s];
      if (t > 0 && s >= 1) from = log_add(from, l.reach[t - 1][s - 1]);
      if (t > 0 && may_skip(labels, s)) from = log_add(from, l.reach[t - 1][s - 2]);
      l.reach[t][s] = from == -INFINITY ? from : from + emit(t, s);
    }
  for (size_t t = steps; t-- > 0;)
    for (size_t s = 0; s < states; ++s) {
      if (t + 1 == steps) {
        l.leave[t][s] = s + 2 >= states ? R(0) : R(-INFINITY);
        continue;
      }
      for (size_t to = s; to < states && to <= s + 2; ++to)
        if ((to < s + 2 || may_skip(labels, to)) && l.leave[t + 1][to] != -INFINITY)
          l.leave[t][s] = log_add(l.leave[t][s], l.leave[t + 1][to] + emit(t + 1, to));
    }
  for (size_t s = states >= 2 ? states - 2 : 0; s < states; ++s)
    l.log_probability = log_add(l.log_probability, l.reach[steps - 1][s]);
  return l;
}

}  // namespace

template <class R>
void ctc_loss(const Context<R>& c) {
  const auto& o = c.template options<CtcOptions>();
  Array<R> logits = c.in(kLogits), log_p = o.log_probs ? logits : log_softmax(logits);
  int64_t steps = logits.dims[0], batch = logits.dims[1], classes = logits.dims[2];
  Ints lengths = c.integers(kInputLengths);
  std::vector<Ints> labels =
      extended_labels(c.template in<int64_t>(kLabels), c.integers(kLabelLengths), o.blank, classes);
  Array<R> costs(Dims{batch}), gradients(logits.dims);
  for (int64_t n = 0; n < batch; ++n) {
    int64_t length = lengths[static_cast<size_t>(n)];
    require(length >= 0 && length <= steps, "input_lengths[", n, "] = ", length, " is not in 0..", steps);
    const Ints& states = labels[static_cast<size_t>(n)];
    Lattice<R> l = make_lattice(log_p, n, states, length);
    costs[n] = -l.log_probability;
    if (l.log_probability == -INFINITY) {
      if (o.zero_infinity) costs[n] = 0;
      continue;
    }
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t k = 0; !o.log_probs && k < classes; ++k) gradients.at(t, n, k) = std::exp(log_p.at(t, n, k));
      for (size_t s = 0; s < states.size(); ++s) {
        auto u = static_cast<size_t>(t);
        gradients.at(t, n, states[s]) -= std::exp(l.reach[u][s] + l.leave[u][s] - l.log_probability);
      }
    }
  }
  c.out(kCosts, costs);
  c.out(kGradients, gradients);
}

TESSERA_REFERENCE(ctc_loss);

}  // namespace tsr::ref
