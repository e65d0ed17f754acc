// SPDX-License-Identifier: Apache-2.0
// A program outside the source tree, built against the installed package.
#include <cstdio>
#include <tessera/tessera.hpp>

int main() {
  tessera::Graph g;
  tessera::Tensor x = g.input("x", tessera::DType::f32, {3});
  tessera::Tensor y = g.output(2.0 * x + 1.0, "y");
  tessera::Buffer bx(x), by(y);
  bx.fill(4);
  g.plan().run({bind(x, bx), bind(y, by)});
  try {
    g.input("x", tessera::DType::f32, {3});
    return 1;
  } catch (const tessera::Error& e) {  // an exception of the library, by its type
    if (e.status() != tessera::Status::bad_parameter) return 1;
  }
  std::printf("2 * 4 + 1 = %g\n", by.get(2));
  return by.get(2) == 9 ? 0 : 1;
}
