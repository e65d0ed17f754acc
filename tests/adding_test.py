#!/usr/bin/env python3
"""Adds an operation that the fused engine takes, an engine and a data type to copies of the sources, as
docs/adding-an-operation.md, docs/adding-an-engine.md and docs/adding-a-data-type.md say; compiles what that touches, links
it in front of the library and runs the cases. Six files at most for the operation, two and a line for the engine, ten for
the type.
Usage: adding_test.py SOURCE COMPILER LIBRARY... (libraries and options for the linker, in their order)"""
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

OPTIONS = "struct ScaledOptions {\n  double factor = 2;\n};\n\n"

SPEC = """// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

void fields(std::any& options, FieldVisitor& v) { v("factor", std::any_cast<tessera::ScaledOptions>(&options)->factor, "of x"); }

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

LOWERING = """    {.op = &ops::scaled,
     .write =
         [](Lowering& l, const Node& n) {
           Lane lane = l.compute_lane(n);
           int factor = l.scalar(attrs<tessera::ScaledOptions>(n).factor, lane);
           l.define(n.out[0], l.apply(PointwiseMode::mul, l.value(n.in[0], lane), factor));
         }},
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

TYPE_CASES = """x = input <f32|f16|e4m3|i8>[3,37]; y = identity x; output y e3m4  #! all=<normal|special>
x = input e3m4[3,37]:col; y = identity x; output y <f64|bf16|e5m2|e3m4|i32>  #! all=<normal|special>
x = input e3m4[4,33]; b = input f32[1,33]; y = gelu (add x b); output y <e3m4|f32>
x = input e3m4[5,40]; y = reduce_<add|max> x axes=1; output y <e3m4|f32>
x = input e3m4[5,40]; y = softmax x axes=1; output y e3m4
a = input <A=e3m4|bf16>[1,19,24]; b = input e3m4[1,24,17]; c = matmul a b; output c <f32|e3m4>
x = input f32[4,64]; y e3m4, s = block_scale_quantize x block=32; output y; output s
q = input e3m4[1,2,9,16]; k = input e3m4[1,2,11,16]; v = input e3m4[1,2,11,16]; o = sdpa_fwd q k v; output o bf16
"""

TYPE_KERNELS = """x = input f32[3,37]; y = identity x; output y e3m4  #! all=special
x = input e3m4[5,40]; y = softmax x axes=1; output y e3m4
"""

MAIN = """#include <iostream>

#include "harness/cases.hpp"
#include "harness/runner.hpp"
#include "runtime/devices.hpp"

// Runs cases on a device; the engines that are named must have run some.
int main(int count, char** argv) {
  tsr::Tally tally;
  tsr::RunnerOptions o;
  o.device = tsr::find_device(argv[1]);
  o.on_failure = [](const std::string& text) { std::cout << text << std::endl; };
  for (const tsr::Case& c : tsr::read_cases(argv[2])) run_case(c, o, tally);
  std::cout << tally.passed << " passed, " << tally.failed << " failed";
  bool ok = tally.failed == 0;
  for (int i = 3; i < count; ++i) {
    std::cout << ", " << tally.by_engine[argv[i]] << " by " << argv[i];
    ok = ok && tally.by_engine[argv[i]] > 0;
  }
  std::cout << std::endl;
  return ok ? 0 : 1;
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
    c.insert("src/planner/lowering_operations.cpp", [("    {.op = &ops::band_mask,", LOWERING)])


def add_engine(c):
    c.write("src/engines/cpu/scaled/scaled.hpp", ENGINE_HEADER)
    c.write("src/engines/cpu/scaled/scaled.cpp", ENGINE)
    c.insert("src/engines/list.cpp", [('#include "engines/cpu/rnn/rnn.hpp"\n', '#include "engines/cpu/scaled/scaled.hpp"\n'),
                                      ("      &cpu::rnn_engine(),\n", "      &cpu::scaled_engine(),\n")])


def add_type(c):
    c.insert("include/tessera/types.hpp", [("};\n\nenum class Status {", "  e3m4,     // 8-bit float, 3 exponent bits\n")])
    c.insert("src/base/dtype_table.hpp", [("};\n\n// f<Row>()", '    {DType::e3m4, "e3m4", TypeKind::real, 8, {3, 4}},\n')])
    c.insert("src/device/types.cuh", [("struct e8m0 {", "using e3m4 = Minifloat<3, 4>;\n")])
    c.write("tests/cases/e3m4.txt", TYPE_CASES)


def named_in(page, names):
    """Each file, or its folder, must be on the page."""
    text = page.read_text()
    for name in names:
        path = pathlib.PurePosixPath(name.replace("scaled", "NAME").replace("e3m4", "NAME"))
        assert str(path) in text or str(path.parent) in text, f"{page.name} does not name {path}"


class Program:
    """What was touched, linked in front of the library."""

    def __init__(self, c, compiler, libraries):
        self.folder, self.compiler, self.libraries, self.objects = c.folder, compiler, libraries, []
        (c.folder / "main.cpp").write_text(MAIN)
        self.compile(["main.cpp"])

    def run(self, *command, **environment):
        subprocess.run(command, cwd=self.folder, check=True, env=os.environ | environment)

    def compile(self, files, name="", *flags):
        for file in files:
            self.objects.append(f"{file}{name}.o".replace("/", "_"))
            self.run(self.compiler, "-std=c++20", "-Iinclude", "-Isrc", *flags, "-c", file, "-o", self.objects[-1])

    def link(self):
        self.run(self.compiler, *self.objects, "-o", "adding", *self.libraries)


def test_operation(c, source, compiler, libraries):
    add_operation(c)
    operation, c.touched = c.touched, []
    add_engine(c)
    engine = c.touched
    named_in(source / "docs/adding-an-operation.md", operation)
    assert len(operation) <= 6, f"an operation takes {len(operation)} files: {operation}"
    assert len(engine) <= 3, f"an engine takes {len(engine)} files: {engine}"
    p = Program(c, compiler, libraries)
    p.compile([f for f in operation + engine if f.endswith(".cpp")])
    # Made of the list of operations.
    p.compile(["src/graph/op.cpp", "src/engines/reference/ops/list.cpp"])
    p.link()
    p.run("./adding", "cpu", "tests/cases/scaled.txt", "fused_cpu", "scaled_cpu")


ISAS = {"generic": []}
if platform.machine() in ("x86_64", "AMD64"):
    ISAS |= {"avx2": ["-mavx2", "-mfma"], "avx512": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"]}


def test_type(c, source, compiler, libraries):
    add_type(c)
    named_in(source / "docs/adding-a-data-type.md", c.touched)
    assert len(c.touched) <= 10, f"a data type takes {len(c.touched)} files: {c.touched}"
    p = Program(c, compiler, libraries)
    # Made of the table of types.
    users = [str(f.relative_to(c.folder)) for f in sorted(c.folder.glob("src/**/*.cpp")) if '/dtype_table.hpp"' in f.read_text()]
    p.compile([f for f in users if not f.endswith("_isa.cpp")])
    for isa, flags in ISAS.items():
        p.compile([f for f in users if f.endswith("_isa.cpp")], isa, f"-DTESSERA_ISA={isa}", *flags)
    p.run("cmake", f"-DFOLDER={c.folder}/src", f"-DOUT={c.folder}/device_sources.cpp", "-P", source / "cmake/embed.cmake")
    p.compile(["device_sources.cpp"])
    p.link()
    p.run("./adding", "cpu", "tests/cases/e3m4.txt", "reference", "fused_cpu", "gemm_cpu", "attention_cpu")
    (c.folder / "kernels.txt").write_text(TYPE_KERNELS)
    p.run("./adding", "emulated", "kernels.txt", "fused_cuda", TESSERA_CACHE="cache", CXX=compiler)


def main():
    source, compiler, libraries = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    for test in (test_operation, test_type):
        with tempfile.TemporaryDirectory() as folder:
            test(Copy(source, pathlib.Path(folder)), source, compiler, libraries)


main()
