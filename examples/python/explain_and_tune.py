"""Why a plan is what it is, and how to let measurements decide instead of the cost model."""
import os
import tempfile

os.environ.setdefault("TESSERA_CACHE", tempfile.mkdtemp())  # this example leaves your tuning file alone

import tessera  # noqa: E402

graph = tessera.Graph.parse("""
x = input f32[256,256]
w = input f32[256,256]
y = softmax (matmul x w)
output y
""")
print(graph.plan().explain())
print(graph.tune(seconds=0.05))
print(graph.plan().explain())          # follows what was measured
print(graph.plan("h200").explain())    # a GPU that need not be there
page = graph.plan().page()             # with a drawing; notebooks show it for plan.explain()
print(len(page), "characters of HTML")
