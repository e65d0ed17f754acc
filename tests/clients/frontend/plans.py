"""What is done with plans beside building and executing them: choosing, repeating, other sizes, no device, mistakes."""
import pathlib
import re
import threading

import cudnn
import numpy as np

from frontend.attention import mask_options
from frontend.attention_reference import Attention, kept
from frontend.tools import A, FALLBACK, ON_GPU, Client, Skipped, check, packed


def product(c, m=24, k=32, n=16, name="f32"):
    """relu(a b + bias)."""
    a, av = c.input(c.normal([2, m, k]), name, uid=11)
    b, bv = c.input(c.normal([2, k, n]), name, uid=12)
    bias, biasv = c.input(c.normal([1, 1, n]), name, uid=13)
    y = c.graph.relu(c.graph.add(c.graph.matmul(a, b), bias))
    y.set_uid(14)
    c.output(y, np.maximum(av @ bv + biasv, 0), name, terms=k)
    return c


def refused(*words):
    """A block that must raise, with all the words in the text."""
    class Refused:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, _):
            assert kind is not None, f"nothing was refused; expected {words}"
            missing = [w for w in words if w not in str(error)]
            assert issubclass(kind, Exception) and not missing, f"{kind.__name__}: {error}\nlacks {missing}"
            return True
    return Refused()


@check
def repeated_choice(handle):
    """Engine and knobs of each plan, as a program would keep them, make the same plan in a new graph."""
    c = product(Client(handle, "choice"))
    c.build([A])
    for i in range(c.graph.get_execution_plan_count()):
        engine, knobs = c.graph.get_engine_and_knobs_at_index(i)
        again = product(Client(handle, "choice"))
        again.graph.validate()
        again.graph.build_operation_graph()
        again.graph.create_execution_plan(engine, knobs)
        again.graph.check_support()
        again.graph.build_plans(cudnn.build_plan_policy.ALL)
        assert again.graph.get_plan_name_at_index(0) == c.graph.get_plan_name_at_index(i)
        again.run(f"engine {engine} with {knobs}")


@check
def filters(handle):
    c = product(Client(handle, "filters"))
    c.graph.validate()
    c.graph.build_operation_graph()
    c.graph.create_execution_plans([A, FALLBACK])
    names = [c.graph.get_plan_name_at_index(i) for i in range(c.graph.get_execution_plan_count())]
    c.graph.deselect_engines(names[1:])
    c.graph.deselect_numeric_notes([cudnn.numerical_note.TENSOR_CORE])
    if not ON_GPU:  # where every engine compiles
        c.graph.deselect_behavior_notes([cudnn.behavior_note.RUNTIME_COMPILATION])
    c.graph.check_support()
    c.graph.build_plans(cudnn.build_plan_policy.HEURISTICS_CHOICE)
    c.run(names[0])
    c = product(Client(handle, "filters"))
    c.graph.validate()
    c.graph.build_operation_graph()
    c.graph.create_execution_plans([A, FALLBACK])
    c.graph.deselect_engines(names)
    with refused():
        c.graph.check_support()


@check
def small_workspaces(handle):
    """Plans that want more than a limit are left out; the others run."""
    built = product(Client(handle, "small"), m=64)
    built.build([A, FALLBACK])
    smallest = min(built.graph.get_workspace_size_plan_at_index(i) for i in range(built.graph.get_execution_plan_count()))
    c = product(Client(handle, "small"), m=64)
    c.graph.validate()
    c.graph.build_operation_graph()
    c.graph.create_execution_plans([A, FALLBACK])
    c.graph.deselect_workspace_greater_than(smallest)
    c.graph.check_support()
    c.graph.build_plans(cudnn.build_plan_policy.HEURISTICS_CHOICE)
    assert c.graph.get_workspace_size() <= smallest
    c.run("the smallest workspace")


@check
def kernel_cache(handle):
    """Graphs for changing sizes that share a cache, which is saved and loaded."""
    cache = cudnn.create_kernel_cache()
    for m in (8, 24, 40):
        c = product(Client(handle, "cache", is_dynamic_shape_enabled=True, kernel_cache=cache), m=m)
        c.build([A])
        c.try_all(f"{m} rows")
    text = cache.serialize()
    loaded = cudnn.create_kernel_cache()
    loaded.deserialize(text)
    c = product(Client(handle, "cache", is_dynamic_shape_enabled=True, kernel_cache=loaded), m=56)
    c.build([A])
    c.run("a loaded cache")


@check
def other_sizes(handle):
    """One plan, executed with sizes that arrive with the data."""
    c = product(Client(handle, "sizes", is_override_shape_enabled=True))
    c.build([A])
    c.run("as planned")
    for m, k, n in ((1, 32, 16), (7, 5, 3), (50, 64, 33)):
        other = product(Client(handle, f"sizes {m}"), m, k, n)
        uids = [11, 12, 13, 14]
        shapes = [[2, m, k], [2, k, n], [1, 1, n], [2, m, n]]
        strides = [packed(s) for s in shapes]
        space = other.space(c.graph.get_workspace_size(handle, uids, shapes, strides))
        other.checked(f"{m} {k} {n}", lambda: c.graph.execute(other.pack(), space, handle=handle, override_uids=uids,
                                                              override_shapes=shapes, override_strides=strides))


def attention(c, b, sq, skv, causal, d=32):
    """Ids 21 to 25: q, k, v, o, stats."""
    x = [c.input(c.normal([b, 2, s, d]), "bf16", uid=21 + i) for i, s in enumerate((sq, skv, skv))]
    options, how = mask_options("causal" if causal else "none")
    o, stats = c.graph.sdpa(*[t for t, _ in x], generate_stats=True, attn_scale=0.2, **options)
    o.set_uid(24)
    stats.set_uid(25)
    a = Attention(*[v for _, v in x], 0.2, kept(b, sq, skv, **how))
    c.output(o, a.o, "bf16", terms=skv, through=["bf16"], size=a.o_size)
    c.output(stats, a.stats, terms=skv + d, size=1 + np.abs(a.largest))
    return c


@check
def other_sizes_of_attention(handle):
    for causal in (False, True):
        c = attention(Client(handle, "sizes", is_override_shape_enabled=True), 2, 32, 48, causal)
        c.build([A])
        c.run("as planned")
        for b, sq, skv in ((1, 1, 100), (3, 40, 40), (2, 7, 5)):
            other = attention(Client(handle, f"sizes {b} {sq} {skv}"), b, sq, skv, causal)
            shapes = [[b, 2, sq, 32], [b, 2, skv, 32], [b, 2, skv, 32], [b, 2, sq, 32], [b, 2, sq, 1]]
            uids, strides = [21, 22, 23, 24, 25], [packed(s) for s in shapes]
            space = other.space(c.graph.get_workspace_size(handle, uids, shapes, strides))
            other.checked(f"{b} {sq} {skv}", lambda: c.graph.execute(
                other.pack(), space, handle=handle, override_uids=uids, override_shapes=shapes, override_strides=strides))


@check
def changing_sizes_of_attention(handle):
    cache = cudnn.create_kernel_cache()
    for sq in (16, 40):
        c = attention(Client(handle, "changing", is_dynamic_shape_enabled=True, kernel_cache=cache), 2, sq, 48, True)
        c.build([A])
        c.try_all(f"{sq} rows")


@check
def without_device(handle):
    """Plans made for the description of a device, saved as text, executed with a handle."""
    text = cudnn.create_device_properties(0).serialize()
    c = product(Client(None, "deviceless", device_property=cudnn.create_device_properties(text)))
    c.build([A])
    c.handle = handle
    c.run("without a device")
    loaded = cudnn.pygraph(device_property=cudnn.create_device_properties(text))
    loaded.deserialize(c.graph.serialize())
    c.run("loaded", loaded)


@check
def threads(handle):
    """One plan, executed by several threads with handles and memory of their own."""
    first = product(Client(handle, "threads"))
    first.build([A])
    failed = []

    def work(i):
        try:
            mine = product(Client(handle, f"thread {i}"))
            own = cudnn.create_handle()
            for _ in range(20):
                space = mine.space(first.graph.get_workspace_size())
                mine.checked(f"thread {i}", lambda: first.graph.execute(mine.pack(), space, handle=own))
        except Exception as e:
            failed.append(e)
    all_ = [threading.Thread(target=work, args=[i]) for i in range(4)]
    for t in all_:
        t.start()
    for t in all_:
        t.join()
    assert not failed, failed


@check
def wrong_sizes(handle):
    c = Client(handle, "wrong")
    x, _ = c.input(c.normal([4, 16, 3, 3]), uid=1)
    mean, inverse, scale, bias = (c.input(c.normal([1, n, 1, 1]), uid=2 + i)[0] for i, n in enumerate((16, 16, 15, 16)))
    y = c.graph.batchnorm_inference(input=x, mean=mean, inv_variance=inverse, scale=scale, bias=bias)
    c.output(y, np.zeros([4, 16, 3, 3]))
    with refused("u4", "[1,15,1,1]", "CUDNN_STATUS_BAD_PARAM"):
        c.build([A])


@check
def wrong_result_sizes(handle):
    c = Client(handle, "wrong")
    x, _ = c.input(c.normal([2, 8, 9, 9]), uid=1)
    w, _ = c.input(c.normal([4, 8, 3, 3]), uid=2)
    y = c.graph.conv_fprop(x, w, padding=[1, 1], stride=[1, 1], dilation=[1, 1])
    y.set_uid(3)
    c.output(y, np.zeros([2, 4, 8, 8]))
    with refused("u3", "[2,4,8,8]"):
        c.build([A])


@check
def wrong_types(handle):
    c = Client(handle, "wrong")
    x, _ = c.input(c.normal([1, 64, 64]), "i32", uid=1)
    y, s = c.graph.block_scale_quantize(x, block_size=32, axis=2)
    c.output(y, np.zeros([1, 64, 64]), "e4m3")
    c.output(s, np.ones([1, 64, 2]), "e8m0")
    with refused("u1", "i32"):
        c.build([A])


@check
def missing_tensor(handle):
    c = product(Client(handle, "missing"))
    c.build([A])
    pack = c.pack()
    del pack[13]
    with refused("13"):
        c.graph.execute(pack, c.space(c.graph.get_workspace_size()), handle=handle)


@check
def bad_pointers(handle):
    c = product(Client(handle, "pointers"))
    c.build([A])
    bytes_ = c.graph.get_workspace_size()
    space = c.space(bytes_)
    with refused("u12", "no pointer"):
        c.graph.execute({**c.pack(), 12: 0}, space, handle=handle)
    with refused("u11", "aligned"):
        c.graph.execute({**c.pack(), 11: c.pack()[11] + 2}, space, handle=handle)
    if bytes_:
        c.graph.execute(c.pack(), c.space(bytes_ + 4) + 4, handle=handle)  # of any alignment
    c.run("after mistakes")


@check
def bad_text(handle):
    c = product(Client(handle, "text"))
    c.build([A])
    blob = bytes(c.graph.serialize())
    at = blob.index(b"tessera-plan")
    broken = blob[:at + 40] + b"zz" + blob[at + 42:]
    loaded = cudnn.pygraph(device_property=cudnn.create_device_properties(0))
    with refused("EXECUTION_PLAN_JSON_REPRESENTATION"):
        loaded.deserialize(broken)
    with refused("DEVICEPROP_JSON_REPRESENTATION"):
        cudnn.create_device_properties("{}")


@check
def every_engine(handle):
    """Each number of an engine runs the graph or says why not."""
    ran, why = [], {}
    for engine in range(1000):
        c = product(Client(handle, "engine"))
        c.graph.validate()
        c.graph.build_operation_graph()
        try:
            c.graph.create_execution_plan(engine, {})
            c.graph.check_support()
            c.graph.build_plans(cudnn.build_plan_policy.ALL)
        except Exception as e:
            why[engine] = str(e)
            if "Invalid engine id" in why[engine]:
                break
            continue
        c.run(f"engine {engine}")
        ran.append(engine)
    assert 0 in ran and len(ran) > 1, f"only {ran} ran: {why}"
    silent = [e for e, text in why.items() if "CUDNN_STATUS" not in text and "Invalid engine id" not in text]
    assert not silent, f"engines {silent} say nothing: {why}"


@check
def without_handle(handle):
    """A plan without a device needs a handle when it is executed; a null one is refused, not followed."""
    c = product(Client(None, "null", device_property=cudnn.create_device_properties(0)))
    c.build([A])
    with refused("handle"):
        c.graph.execute(c.pack(), c.space(c.graph.get_workspace_size()))


@check
def documented_example(handle):
    """The program of docs/drop-in.md."""
    if ON_GPU:
        raise Skipped("the program is for the processor")
    text = (pathlib.Path(__file__).parents[3] / "docs" / "drop-in.md").read_text()
    names = {}
    exec(re.search(r"^```python\n(.*?)^```", text, re.S | re.M).group(1), names)
    assert (names["y"] == 3).all(), names["y"]
