#!/usr/bin/env python3
"""PyTorch as a peer of `tessera bench`: reads graphs as JSON, one a line, and answers each with the median time of the
same operations in PyTorch eager, or with the reason why there is none."""
import json
import math
import statistics
import sys
import time

import torch
import torch.nn.functional as F

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "bool": torch.bool}


def ints(text):
    return [int(v) for v in text.strip("()").split(",") if v]


def spatial(options, key, default, rank):
    return ints(options.get(key, "")) or [default] * rank


def conv_arguments(o, rank):
    pad = spatial(o, "pad", 0, rank)
    if ints(o.get("post_pad", "")) not in ([], pad):
        raise ValueError("asymmetric padding")
    return {"stride": spatial(o, "stride", 1, rank), "padding": pad, "dilation": spatial(o, "dilation", 1, rank)}


def conv(x, w, o):
    a = conv_arguments(o, x.dim() - 2)
    function = [F.conv1d, F.conv2d, F.conv3d][x.dim() - 3]
    return function(x, w, groups=x.shape[1] // w.shape[1], **a)


def conv_gradient(want, node, x_size, w_size, dy, x, w):
    a = conv_arguments(node["options"], dy.dim() - 2)
    x = torch.empty(x_size, dtype=dy.dtype).contiguous(memory_format=torch.channels_last) if x is None else x
    w = torch.empty(w_size, dtype=dy.dtype) if w is None else w
    mask = [want == "x", want == "w", False]
    out = torch.ops.aten.convolution_backward(dy, x, w, None, a["stride"], a["padding"], a["dilation"], False,
                                              [0] * (dy.dim() - 2), x.shape[1] // w.shape[1], mask)
    return out[0] if want == "x" else out[1]


def norm_width(node, env, dims):
    scale = env.get(node["in"].get("scale"))
    return [d for d, s in zip(dims, scale.shape) if s == d and d > 1] if scale is not None else list(dims[-1:])


def axes(o):
    return ints(o.get("axes", "")) or None


def batch_norm(x, scale, bias, o):
    """The result, the mean and the inverse deviation, as in training."""
    y, mean, inverse = torch.ops.aten.native_batch_norm(x, scale.flatten(), bias.flatten(), None, None, True,
                                                        0.1, float(o["eps"]))
    return y, mean.view_as(scale), inverse.view_as(scale)


def layer_norm_bwd(values):
    x, scale = values["x"], values["scale"]
    width = list(x.shape[-1:])
    dx, dscale, dbias = torch.ops.aten.native_layer_norm_backward(
        values["dy"], x, width, values["mean"], values["inv_variance"], scale.reshape(width),
        torch.zeros_like(scale).reshape(width), [True, True, True])
    return dx, dscale.view_as(scale), dbias.view_as(scale)


def rms_norm_bwd(values):
    x, scale = values["x"], values["scale"]
    width = list(x.shape[-1:])
    dx, dscale = torch.ops.aten._fused_rms_norm_backward(values["dy"], x, width, values["inv_variance"], scale.reshape(width),
                                                         [True, True])
    return dx, dscale.view_as(scale)


def batch_norm_bwd(values):
    scale = values["scale"]
    dx, dscale, dbias = torch.ops.aten.native_batch_norm_backward(
        values["dy"], values["x"], scale.flatten(), None, None, values["mean"].flatten(), values["inv_variance"].flatten(), True,
        1e-5, [True, True, True])  # eps is in inv_variance
    return dx, dscale.view_as(scale), dbias.view_as(scale)


def pool(x, o):
    window, stride, pad = (ints(o[k]) for k in ("window", "stride", "pad"))
    if x.dim() != 4 or o["padding"] != "automatic" or o["alpha"] != "1" or ints(o["post_pad"]) not in ([], pad) or ints(o["size"]):
        raise ValueError("pooling with options that PyTorch lacks")
    if o["mode"] == "max_pool":
        return F.max_pool2d(x, window, stride or 1, pad or 0)
    if o["mode"].startswith("avg_pool"):
        return F.avg_pool2d(x, window, stride or 1, pad or 0, count_include_pad=o["mode"] == "avg_pool_include")
    raise ValueError("no translation of resample mode=" + o["mode"])


def rope(x, freqs, o):
    width = int(o["rope_dim"]) or x.shape[-1]
    angle = freqs.reshape(-1, freqs.shape[-1])[:x.shape[2], :width // 2]
    kept, a, b = x.split([x.shape[-1] - width, width // 2, width // 2], -1)
    turned = torch.cat([kept, a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)
    return turned * float(o["scale"]) if o["scale"] != "1" else turned


def causal_conv1d(values, o):
    x, w = values["x"], values["weight"]
    w = w.flip(1) if o["reversed"] == "true" else w
    y = F.conv1d(x, w.unsqueeze(1), values.get("bias"), padding=w.shape[1] - 1, groups=x.shape[1])[..., :x.shape[2]]
    return F.silu(y) if o["activation"] == "silu" else y


def rnn_parameters(weight, inputs, o):
    """The matrices and biases of a network as views of the flat weights, in PyTorch's order."""
    hidden, proj, layers = (int(o[k]) for k in ("hidden", "proj", "layers"))
    directions, gates = 2 if o["bidirectional"] == "true" else 1, {"lstm": 4, "gru": 3}.get(o["mode"], 1)
    outputs, at, matrices, biases = proj or hidden, 0, [], []

    def take(*size):
        nonlocal at
        at += math.prod(size)
        return weight[at - math.prod(size):at].view(size)

    for layer in range(layers):
        for _ in range(directions):
            width = inputs if layer == 0 else directions * outputs
            matrices.append([take(gates * hidden, width), take(gates * hidden, outputs)] + ([take(proj, hidden)] if proj else []))
    for _ in range(layers * directions):
        biases.append([take(gates * hidden), take(gates * hidden)])
    return [p for m, b in zip(matrices, biases) for p in m[:2] + b + m[2:]]


def rnn(values, o, parameters, training):
    """y, hn and, of lstm, cn."""
    if o["input"] != "linear" or o["bias"] != "both" or o["packed"] == "true" or "seq_lengths" in values or "clip_min" in o:
        raise ValueError("a recurrent network with options that PyTorch lacks")
    x, layers, bidirectional = values["x"], int(o["layers"]), o["bidirectional"] == "true"
    batch_first = o["layout"] == "batch_major"
    states = layers * (2 if bidirectional else 1), x.shape[0 if batch_first else 1]
    h0 = values.get("h0", x.new_zeros(*states, int(o["proj"]) or int(o["hidden"])))
    rest = (parameters, True, layers, float(o["dropout"]), training, bidirectional, batch_first)
    if o["mode"] == "lstm":
        return torch._VF.lstm(x, (h0, values.get("c0", x.new_zeros(*states, int(o["hidden"])))), *rest)
    return {"gru": torch._VF.gru, "tanh": torch._VF.rnn_tanh, "relu": torch._VF.rnn_relu}[o["mode"]](x, h0, *rest)


def rnn_gradients(values, o):
    """dx and the gradient of the weights, forward pass included: ours computes it again."""
    if "dhn" in values or "dcn" in values:
        raise ValueError("gradients of last states")
    with torch.enable_grad():
        x = values["x"].detach().requires_grad_()
        parameters = [p.detach().requires_grad_() for p in rnn_parameters(values["weight"], x.shape[-1], o)]
        y = rnn({**values, "x": x}, o, parameters, True)[0]
        dx, *dweights = torch.autograd.grad(y, [x] + parameters, values["dy"])
    matrices = [d.flatten() for d in dweights if d.dim() > 1]
    return dx, torch.cat(matrices + [d for d in dweights if d.dim() == 1])


def evaluate(node, env, sizes):
    """The results of a node, in the order of its outputs."""
    op, o = node["op"], node["options"]
    names = node["in"]
    values = {k: env[v] for k, v in names.items()}
    first = next(iter(values.values()))
    if op == "matmul":
        return values["a"] @ values["b"]
    if op == "conv_fprop":
        return conv(values["x"], values["w"], o)
    if op == "conv_dgrad":
        return conv_gradient("x", node, sizes[node["out"][0]], None, values["dy"], None, values["w"])
    if op == "conv_wgrad":
        return conv_gradient("w", node, None, sizes[node["out"][0]], values["dy"], values["x"], None)
    if op == "identity":
        return first.clone()
    if op == "reduce_add":
        return torch.sum(first, axes(o), keepdim=True, dtype=torch.float32 if first.dtype.itemsize == 2 else None)
    if op == "dropout":
        return torch.native_dropout(first, float(o["p"]), True)  # the result and the mask
    if op == "transpose":
        return first.permute(ints(o["perm"])).contiguous()
    if op == "resample":
        return pool(first, o)
    if op == "rope":
        return rope(values["x"], values["freqs"], o)
    if op == "causal_conv1d":
        return causal_conv1d(values, o)
    if op == "softmax":
        return torch.softmax(first, -1)
    if op == "softmax_bwd":
        return torch.ops.aten._softmax_backward_data(values["dy"], values["y"], -1, values["y"].dtype)
    if op == "batch_norm" and o.get("phase") == "training" and set(values) == {"x", "scale", "bias"}:
        return batch_norm(first, values["scale"], values["bias"], o)
    if op == "layer_norm_bwd" and len(node["out"]) == 3:
        return layer_norm_bwd(values)
    if op == "rms_norm_bwd" and len(node["out"]) == 2:
        return rms_norm_bwd(values)
    if op == "batch_norm_bwd" and len(node["out"]) == 3:
        return batch_norm_bwd(values)
    if op == "layer_norm":
        width = norm_width(node, env, first.shape)
        scale, bias = (values[k].reshape(width) if k in values else None for k in ("scale", "bias"))
        return F.layer_norm(first, width, scale, bias)
    if op == "rms_norm":
        width = norm_width(node, env, first.shape)
        return F.rms_norm(first, width, values["scale"].reshape(width) if "scale" in values else None)
    if op == "sdpa_fwd":
        q, k, v = values["q"], values["k"], values["v"]
        if len(values) > 3:
            raise ValueError("attention with more inputs than q, k and v")
        return F.scaled_dot_product_attention(q, k, v, is_causal=o.get("right") == "0",
                                              scale=float(o.get("scale", 1)), enable_gqa=q.shape[1] != k.shape[1])
    if op == "rnn_fwd":
        return rnn(values, o, rnn_parameters(values["weight"], first.shape[-1], o), False)
    if op in ("rnn_bwd_data", "rnn_bwd_weights") and len(node["out"]) == 1:
        key = ("rnn", names["x"], names["weight"], names["dy"])  # both gradients come from one pass
        result = env.pop(key) if op == "rnn_bwd_weights" and key in env else rnn_gradients(values, o)
        if op == "rnn_bwd_data":
            env[key] = result
        return result[0 if op == "rnn_bwd_data" else 1]
    unary = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "abs": torch.abs, "exp": torch.exp,
             "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "rsqrt": torch.rsqrt}
    binary = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}
    if op in unary:
        return unary[op](first)
    if op in binary:
        return binary[op](*values.values())
    raise ValueError("no translation of " + op)


def tensor(t):
    if "value" in t:
        return torch.tensor(t["value"], dtype=DTYPES[t["dtype"]])
    x = torch.randn(t["dims"]).to(DTYPES[t["dtype"]])
    return x.movedim(1, -1).contiguous().movedim(-1, 1) if t.get("channels_last") else x


def run_graph(graph, env):
    """Evaluates all nodes; the graph's outputs in their types."""
    sizes = {t["name"]: t["dims"] for t in graph["results"]}
    types = {t["name"]: DTYPES.get(t["dtype"]) for t in graph["results"]}
    with torch.no_grad():
        for node in graph["nodes"]:
            got = evaluate(node, env, sizes)
            got = got if isinstance(got, tuple) else (got,)
            if len(got) < len(node["out"]):
                raise ValueError(f"{node['op']} with {len(node['out'])} results")
            env.update(zip(node["out"], got))
        return [env[name].to(types[name]) for name in graph["outputs"]]


def measure(graph):
    torch.set_num_threads(graph["threads"])
    env = {t["name"]: tensor(t) for t in graph["tensors"]}
    run_graph(graph, env)
    times, start = [], time.perf_counter()
    while not times or time.perf_counter() - start < graph["seconds"]:
        begin = time.perf_counter()
        run_graph(graph, env)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def main():
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        try:
            answer = {"ms": measure(json.loads(line))}
            if not math.isfinite(answer["ms"]):
                answer = {"reason": "no finite time"}
        except Exception as e:  # any failure is a reason, not the end of the run
            answer = {"reason": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
