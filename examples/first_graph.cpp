// SPDX-License-Identifier: Apache-2.0
// A first graph: convolution, bias and relu; built, planned, run and read back.
//
//   example_first_graph --device cuda
#include <cstdio>

#include "flags.hpp"

using namespace tessera;
using namespace model;

static int run(int argc, char** argv) {
  Flags flags(argc, argv);
  std::string device = flags.text("device", "cpu");
  flags.refuse_others();
  Graph g;
  Tensor x = g.input("x", DType::bf16, {1, 8, 6, 6}, {.layout = "nhwc"});
  Tensor w = g.input("w", DType::bf16, {4, 8, 3, 3}, {.layout = "nhwc"});
  Tensor b = g.input("b", DType::f32, {1, 4, 1, 1});
  Tensor y = g.output(relu(conv_fprop(x, w, {.pad = {1, 1}}) + b), "y", DType::bf16);

  Plan plan = g.plan({.device = device});
  Buffer bx(x, device), bw(w, device), bb(b, device), by(y, device);
  bx.fill_random(1);
  bw.fill_random(2);
  bb.fill(0.5);
  plan.run({bind(x, bx), bind(w, bw), bind(b, bb), bind(y, by)});

  std::printf("%s\n%s\n", g.text().c_str(), plan.explain().c_str());
  std::printf("y[0] = %g, y[last] = %g\n", by.get(0), by.get(by.size() - 1));
  for (double v : by.values())
    if (!(v >= 0)) return 1;
  return 0;
}

int main(int argc, char** argv) { return guarded(run, argc, argv); }
