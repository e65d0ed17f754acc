// SPDX-License-Identifier: Apache-2.0
// Plans as objects: saved and loaded, run with other sizes, and errors that say what is wrong.
#include <cstdio>
#include <tessera/tessera.hpp>

using namespace tessera;

int main() {
  Graph g = Graph::parse(R"(
    x = input f32[4,16]
    s = input f32[1,16]
    y = gelu (layer_norm x s)
    output y
  )");
  Plan plan = Plan::load(g.plan().save());
  Buffer x(g["x"]), s(g["s"]), y(g["y"]);
  x.fill_random(1);
  s.fill(1);
  Binding bindings[] = {bind(g["x"], x), bind(g["s"], s), bind(g["y"], y)};
  plan.run(bindings);
  std::printf("4 rows: y[0] = %g\n", y.get(0));

  // The same plan for two rows: nothing is compiled, the smaller plan is made once and kept.
  ShapeOverride two_rows[] = {{g["x"], {2, 16}, {}}};
  Workspace workspace(plan, two_rows);
  y.fill(-1);
  plan.execute(bindings, two_rows, workspace.data(), workspace.bytes());
  std::printf("2 rows: y[0] = %g, y[32] is untouched: %g\n", y.get(0), y.get(32));

  try {
    Graph::parse("x = input f32[4,16]; y = geluu x; output y");
  } catch (const Error& e) {
    std::printf("%s\n", e.what());
    return y.get(32) == -1 ? 0 : 1;
  }
  return 1;
}
