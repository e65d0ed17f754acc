"""Norm and activation in one pass, described once and run on arrays of numpy."""
import numpy

import tessera

graph = tessera.Graph()
x = graph.input("x", "f32", [512, 1024])
scale = graph.input("scale", "f32", [1, 1024])
bias = graph.input("bias", "f32", [1, 1024])
graph.output(tessera.gelu(tessera.layer_norm(x, scale, bias)), "y")
print(graph)

plan = graph.plan()
print(plan.explain())

rng = numpy.random.default_rng(0)
values = rng.standard_normal((512, 1024), "f")
ones, zeros = numpy.ones((1, 1024), "f"), numpy.zeros((1, 1024), "f")
y = plan(values, ones, zeros)  # numpy allocates the output
print("mean", y.mean(), "of", y.shape)

# The same as a decorated function: the plan is made at the first call with arrays of these kinds.
@tessera.fuse
def norm_gelu(x, scale, bias):
    return tessera.gelu(tessera.layer_norm(x, scale, bias))

assert numpy.array_equal(norm_gelu(values, ones, zeros), y)
