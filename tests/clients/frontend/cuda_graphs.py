"""Plans in CUDA graphs: put there by the package, and captured from a stream. With a CUDA run time alone."""
import ctypes
import os

import cudnn

from frontend.plans import product
from frontend.tools import A, Client, Runtime, check


def launch(runtime, graph):
    runnable = ctypes.c_void_p()
    runtime.cudaGraphInstantiate(ctypes.byref(runnable), graph, ctypes.c_ulonglong(0))
    runtime.cudaGraphLaunch(runnable, None)
    runtime.cudaDeviceSynchronize()
    runtime.cudaGraphExecDestroy(runnable)


def with_runtime(f):
    if "CUDNN_FRONTEND_CUDART_LIB_NAME" in os.environ:
        check(f)
    return f


@with_runtime
def populated(handle):
    runtime, graph = Runtime(), ctypes.c_void_p()
    first, second = product(Client(handle, "populated")), product(Client(handle, "updated"))
    first.build([A])
    space = first.space(first.graph.get_workspace_size())
    second.workspace = first.workspace
    runtime.cudaGraphCreate(ctypes.byref(graph), 0)
    first.graph.populate_cuda_graph(handle, first.pack(), space, graph.value)
    first.checked("populated", lambda: launch(runtime, graph))
    first.graph.update_cuda_graph(handle, second.pack(), space, graph.value)
    second.checked("updated", lambda: launch(runtime, graph))
    runtime.cudaGraphDestroy(graph)


@with_runtime
def captured(handle):
    runtime, stream, graph = Runtime(), ctypes.c_void_p(), ctypes.c_void_p()
    c = product(Client(handle, "captured"))
    c.build([A])
    space = c.space(c.graph.get_workspace_size())
    runtime.cudaStreamCreate(ctypes.byref(stream))
    own = cudnn.create_handle()
    cudnn.set_stream(handle=own, stream=stream.value)
    runtime.cudaStreamBeginCapture(stream, 1)
    c.graph.execute(c.pack(), space, handle=own)
    runtime.cudaStreamEndCapture(stream, ctypes.byref(graph))
    for _ in range(2):
        c.checked("captured", lambda: launch(runtime, graph))
    runtime.cudaGraphDestroy(graph)
    cudnn.destroy_handle(own)
    runtime.cudaStreamDestroy(stream)
