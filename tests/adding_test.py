#!/usr/bin/env python3
"""Adds an operation that the fused engine takes, and an engine, to a copy of the sources, as docs/adding-an-operation.md
and docs/adding-an-engine.md say; compiles what that touches, links it in front of the library and runs the cases. Six
files at most for the operation, two and a line for the engine.
Usage: adding_test.py SOURCE COMPILER LIBRARY... (libraries and options for the linker, in their order)"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

OPTIONS = "struct ScaledOptions {\n  double factor = 2;\n};\n\n"

SPEC = """// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

void fields(std::any& options, FieldVisitor& v) { v("factor", std::any_cast<tessera::ScaledOptions>(&options)->factor); }

void infer(Infer& ctx) {
  ctx.check(is_real(ctx.in(0).dtype), ctx.describe(0), " must have a floating-point type");
  ctx.output(0, ctx.in(0).dims, ctx.in(0).dtype, &ctx.in(0));
}

}  // namespace

const OpSpec ops::scaled = {
    .name = "scaled",
    .family = Family::other,
    .in = {{"x"}},
    .out = {{"y"}},
    .defaults = tessera::ScaledOptions{},
    .fields = fields,
    .infer = infer,
    .formula = "y = factor x",
    .shapes = "x -> y as x",
    .example = "x = input f32[4]\\ny = scaled x\\noutput y",
    .no_gradient = "a test has no use for it",
};

}  // namespace tsr
"""

DEFINITION = """// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

template <class R>
void scaled(const Context<R>& c) {
  Array<R> x = c.in(0), y(x.dims);
  for (int64_t i = 0; i < x.size(); ++i) y[i] = R(c.template options<tessera::ScaledOptions>().factor) * x[i];
  c.out(0, y);
}

TESSERA_REFERENCE(scaled);

}  // namespace tsr::ref
"""

LOWERING = """  if (is(n, "scaled")) {
    Lane lane = compute_lane(n);
    double factor = attrs<tessera::ScaledOptions>(n).factor;
    return define(n.out[0], apply(PointwiseMode::mul, value(n.in[0], lane), scalar(factor, lane)));
  }
"""

CASES = """x = input <f32|bf16|f64>[3,5]:col; y = relu (scaled x factor=<-1|3>); output y
x = input i32[4]; y = scaled x; output y #! error="must have a floating-point type"
"""

ENGINE = """// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/scaled/scaled.hpp"

#include "graph/ops/list.hpp"

namespace tsr::cpu {
namespace {

class ScaledStep : public Step {
 public:
  ScaledStep(TensorId x, TensorId y, int64_t count, double factor) : x_(x), y_(y), count_(count), factor_(factor) {}
  void run(const StepArgs& a) const override {
    auto* x = static_cast<const float*>(a.tensors[x_]);
    auto* y = static_cast<float*>(a.tensors[y_]);
    for (int64_t i = 0; i < count_; ++i) y[i] = static_cast<float>(factor_) * x[i];
  }

 private:
  TensorId x_, y_;
  int64_t count_;
  double factor_;
};

class ScaledEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"scaled_cpu", 99, DeviceKind::cpu, true, "for a test"};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    const Graph& g = *r.graph;
    const Node& n = g.node(r.nodes[0]);
    if (r.nodes.size() != 1 || n.op != &ops::scaled) return Reason::no(spelling(n), " is more than one scaled");
    const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
    if (x.dtype != DType::f32) return Reason::no("tensor ", describe(x), " is not f32");
    if (x.span() != x.numel() || !(x.strides == y.strides)) return Reason::no("tensor ", describe(x), " has gaps");
    return one_way(roofline(r, d, 1) + d.step_seconds, [&n, count = x.numel()] {
      return std::make_unique<ScaledStep>(n.in[0], n.out[0], count, attrs<tessera::ScaledOptions>(n).factor);
    });
  }
};

}  // namespace

const Engine& scaled_engine() {
  static const ScaledEngine e;
  return e;
}

}  // namespace tsr::cpu
"""

ENGINE_HEADER = """// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/engine.hpp"

namespace tsr::cpu {

const Engine& scaled_engine();

}  // namespace tsr::cpu
"""

MAIN = """#include <iostream>

#include "harness/cases.hpp"
#include "harness/runner.hpp"

int main(int, char** argv) {
  tsr::Tally tally;
  tsr::RunnerOptions o;
  o.device = tsr::cpu_device();
  o.on_failure = [](const std::string& text) { std::cout << text << std::endl; };
  for (const tsr::Case& c : tsr::read_cases(argv[1])) run_case(c, o, tally);
  std::cout << tally.passed << " passed, " << tally.by_engine["fused_cpu"] << " by the fused engine, "
            << tally.by_engine["scaled_cpu"] << " by its own\\n";
  return tally.failed == 0 && tally.by_engine["fused_cpu"] > 0 && tally.by_engine["scaled_cpu"] > 0 ? 0 : 1;
}
"""


class Copy:
    def __init__(self, source, folder):
        self.source, self.folder, self.touched = source, folder, []
        for part in ("include", "src"):
            shutil.copytree(source / part, folder / part)

    def write(self, name, text):
        path = self.folder / name
        assert not path.exists(), f"{name} exists"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.touched.append(name)

    def insert(self, name, pairs):
        """`pairs`: a text of the file, and what comes in front of it."""
        text = (self.folder / name).read_text()
        for before, added in pairs:
            assert text.count(before) == 1, f"{name} has '{before}' {text.count(before)} times"
            text = text.replace(before, added + before)
        (self.folder / name).write_text(text)
        self.touched.append(name)


def add_operation(c):
    c.insert("include/tessera/options.hpp", [("struct DropoutOptions {", OPTIONS)])
    c.write("src/graph/ops/scaled.cpp", SPEC)
    c.insert("src/graph/ops/list.inc", [("OPERATION(dropout)\n", "OPERATION(scaled)\n")])
    c.write("src/engines/reference/ops/scaled.cpp", DEFINITION)
    c.write("tests/cases/scaled.txt", CASES)
    c.insert("src/planner/lowering.cpp", [('"dropout_bwd", "band_mask"', '"scaled", '), ("  band_mask(n);\n}", LOWERING)])


def add_engine(c):
    c.write("src/engines/cpu/scaled/scaled.hpp", ENGINE_HEADER)
    c.write("src/engines/cpu/scaled/scaled.cpp", ENGINE)
    c.insert("src/engines/list.cpp", [('#include "engines/cpu/rnn/rnn.hpp"\n', '#include "engines/cpu/scaled/scaled.hpp"\n'),
                                      ("      &cpu::rnn_engine(),\n", "      &cpu::scaled_engine(),\n")])


def named_in(page, names):
    """Each file, or its folder, must be on the page."""
    text = page.read_text()
    for name in names:
        path = pathlib.PurePosixPath(name.replace("scaled", "NAME"))
        assert str(path) in text or str(path.parent) in text, f"{page.name} does not name {path}"


def main():
    source, compiler, libraries = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    with tempfile.TemporaryDirectory() as folder:
        c = Copy(source, pathlib.Path(folder))
        add_operation(c)
        operation, c.touched = c.touched, []
        add_engine(c)
        engine = c.touched
        named_in(source / "docs/adding-an-operation.md", operation)
        assert len(operation) <= 6, f"an operation takes {len(operation)} files: {operation}"
        assert len(engine) <= 3, f"an engine takes {len(engine)} files: {engine}"
        (c.folder / "main.cpp").write_text(MAIN)
        # Beside what was touched, the files that are made of the list of operations.
        files = [f for f in operation + engine if f.endswith(".cpp")]
        files += ["src/graph/op.cpp", "src/engines/reference/ops/list.cpp", "main.cpp"]
        command = [compiler, "-std=c++20", "-O0", "-Iinclude", "-Isrc", *files, "-o", "adding", *libraries]
        subprocess.run(command, cwd=folder, check=True)
        subprocess.run(["./adding", "tests/cases/scaled.txt"], cwd=folder, check=True)


main()
