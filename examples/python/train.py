"""A convolution block trained by gradient descent: gradients and the update are part of one graph, arrays are numpy's."""
import numpy

import tessera

graph = tessera.Graph()
x = graph.input("x", "f32", [8, 1, 8, 8])
target = graph.input("target", "f32", [8, 4, 6, 6])
w = graph.input("w", "f32", [4, 1, 3, 3])
b = graph.input("b", "f32", [1, 4, 1, 1])
error = tessera.relu(tessera.conv_fprop(x, w, pad=(0, 0)) + b) - target
loss = tessera.mean(error * error)
rate = graph.scalar("rate", "f32")
for name, weight, slope in zip("wb", (w, b), tessera.gradient(loss, [w, b])):
    graph.output(weight - slope * rate, f"new_{name}")
graph.output(loss, "loss")
plan = graph.plan()

rng = numpy.random.default_rng(0)
a = {"x": rng.standard_normal((8, 1, 8, 8), "f"), "w": rng.standard_normal((4, 1, 3, 3), "f") * 0.1,
     "b": numpy.zeros((1, 4, 1, 1), "f"), "target": numpy.abs(rng.standard_normal((8, 4, 6, 6), "f"))}
loss_now = numpy.empty((1, 1, 1, 1), "f")
losses = []
for _ in range(100):
    # An output may have the memory of an input: the weights are updated in place.
    plan(**a, rate=0.5, new_w=a["w"], new_b=a["b"], loss=loss_now)
    losses.append(loss_now.item())
print("loss", losses[0], "->", losses[-1])
assert losses[-1] < 0.8 * losses[0]
