// SPDX-License-Identifier: Apache-2.0
// Attention with grouped heads, a causal mask and a soft cap on the scores, checked against a plain loop.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "flags.hpp"

using namespace tessera;
using namespace model;

static int run(int argc, char** argv) {
  Flags flags(argc, argv);
  std::string device = flags.text("device", "cpu");
  flags.refuse_others();
  constexpr int kHeads = 4, kKvHeads = 2, kSteps = 5, kDepth = 8;
  constexpr double kCap = 3, kScale = 0.35;
  Graph g;
  Tensor q = g.input("q", DType::f32, {1, kHeads, kSteps, kDepth});
  Tensor k = g.input("k", DType::f32, {1, kKvHeads, kSteps, kDepth});
  Tensor v = g.input("v", DType::f32, {1, kKvHeads, kSteps, kDepth});
  SdpaOptions options{.scale = kScale, .right = 0};
  options.score_mod = subgraph([](Tensor s) { return kCap * tanh(s / kCap); });
  Results r = sdpa_fwd(q, k, v, options, {}, {"stats"});
  Tensor o = g.output(r["o"], "o"), stats = g.output(r["stats"], "stats");

  Buffer bq(q, device), bk(k, device), bv(v, device), bo(o, device), bs(stats, device);
  bq.fill_random(1);
  bk.fill_random(2);
  bv.fill_random(3);
  g.plan({.device = device}).run({bind(q, bq), bind(k, bk), bind(v, bv), bind(o, bo), bind(stats, bs)});

  std::vector<double> vq = bq.values(), vk = bk.values(), vv = bv.values(), vo = bo.values();
  auto at = [](int head, int step, int d) { return static_cast<size_t>((head * kSteps + step) * kDepth + d); };
  double worst = 0;
  for (int h = 0; h < kHeads; ++h) {
    int kv = h / (kHeads / kKvHeads);
    for (int i = 0; i < kSteps; ++i) {
      double sum = 0, out[kDepth] = {};
      for (int j = 0; j <= i; ++j) {
        double s = 0;
        for (int d = 0; d < kDepth; ++d) s += vq[at(h, i, d)] * vk[at(kv, j, d)];
        double p = std::exp(kCap * std::tanh(s * kScale / kCap));
        sum += p;
        for (int d = 0; d < kDepth; ++d) out[d] += p * vv[at(kv, j, d)];
      }
      for (int d = 0; d < kDepth; ++d) worst = std::max(worst, std::fabs(out[d] / sum - vo[at(h, i, d)]));
    }
  }
  std::printf("largest difference from the plain loop: %g\n", worst);
  return worst < 1e-5 ? 0 : 1;
}

int main(int argc, char** argv) { return guarded(run, argc, argv); }
