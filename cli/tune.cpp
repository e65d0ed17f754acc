// SPDX-License-Identifier: Apache-2.0
// `tessera tune`: measures every way to run each step of a graph's plan and keeps the fastest (harness/tune.hpp).
#include "harness/tune.hpp"

#include <iostream>

#include "command.hpp"

namespace tsr::cli {
namespace {

struct Arguments {
  PlanArguments plan;
  std::string out;
  double seconds = 1;
};

void print(TuneLine kind, const std::string& line) {
  bool painted = kind != TuneLine::plain;
  std::cout << (painted ? paint(kind == TuneLine::title ? Colour::bold : Colour::red, line) : line) << std::endl;
}

int run(const Arguments& a) {
  tune(read_graph(a.plan.graph), a.plan.pick_device(), {a.plan.options(), a.seconds, a.out}, print);
  if (!a.out.empty()) std::cout << "to use it: TESSERA_TUNING=" << a.out << "\n";
  return kOk;
}

}  // namespace

void add_tune(Command& app) {
  auto a = std::make_shared<Arguments>();
  Command c = app.add_command("tune", "Measure every way to run the steps of a graph and remember the fastest");
  a->plan.add_to(c);
  c.add_option("--out", a->out, "file to write or add to; default: the one that plans read (see `tessera doctor`)");
  c.add_option("--seconds", a->seconds, "time for the candidates of each step").show_default();
  c.footer("Example:  tessera tune 'x = input f32[64,64]; y = softmax x; output y' --seconds 1");
  c.runs([a] { return run(*a); });
}

}  // namespace tsr::cli
