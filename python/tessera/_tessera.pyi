from collections.abc import Callable, Iterator, Sequence
import fractions
from typing import Any, Literal, overload


class Error(RuntimeError):
    """
    Every failure. The text names the tensor, what was given and what is allowed; `status` says of what kind it is.
    """

    status: str


class Tensor:
    """
    A tensor of a graph: an input, or the result of an operation. It has no values.
    """

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> str: ...

    @property
    def dims(self) -> tuple[int, ...]: ...

    @property
    def strides(self) -> tuple[int, ...]: ...

    @property
    def uid(self) -> int: ...

    def astype(self, dtype: object) -> Tensor:
        """Gives a result its type; returns the same tensor."""

    def layout(self, name: str) -> Tensor:
        """
        Gives a result its order in memory, such as "nhwc"; returns the same tensor.
        """

    def ragged(self, offsets: Tensor, multiplier: int = 1) -> Tensor:
        """
        Packed sequences: offsets of each batch's first element, in units of `multiplier` elements.
        """

    def __neg__(self) -> Tensor: ...

    def __abs__(self) -> Tensor: ...

    def __repr__(self) -> str: ...

    def __add__(self, other: Tensor | float) -> Tensor: ...

    def __radd__(self, other: Tensor | float) -> Tensor: ...

    def __sub__(self, other: Tensor | float) -> Tensor: ...

    def __rsub__(self, other: Tensor | float) -> Tensor: ...

    def __mul__(self, other: Tensor | float) -> Tensor: ...

    def __rmul__(self, other: Tensor | float) -> Tensor: ...

    def __truediv__(self, other: Tensor | float) -> Tensor: ...

    def __rtruediv__(self, other: Tensor | float) -> Tensor: ...

    def __pow__(self, other: Tensor | float) -> Tensor: ...

    def __rpow__(self, other: Tensor | float) -> Tensor: ...

    def __matmul__(self, other: Tensor | float) -> Tensor: ...

    def __rmatmul__(self, other: Tensor | float) -> Tensor: ...

    def __lt__(self, other: Tensor | float) -> Tensor: ...

    def __le__(self, other: Tensor | float) -> Tensor: ...

    def __gt__(self, other: Tensor | float) -> Tensor: ...

    def __ge__(self, other: Tensor | float) -> Tensor: ...

    def add(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x + b"""

    def mul(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x b"""

    def min(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """the smaller of x and b; NaN wins"""

    def max(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """the larger of x and b; NaN wins"""

    def sqrt(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """square root"""

    def add_square(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x + b^2"""

    def div(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x / b; integers truncate, x / 0 is 0"""

    def mod(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """remainder with the sign of x"""

    def pow(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x^b"""

    def sub(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x - b"""

    def abs(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """|x|"""

    def ceil(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """smallest whole number not below x"""

    def cos(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """cos x"""

    def exp(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """e^x"""

    def floor(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """largest whole number not above x"""

    def log(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """natural logarithm"""

    def neg(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """-x"""

    def rsqrt(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """1 / sqrt(x)"""

    def sin(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """sin x"""

    def tan(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """tan x"""

    def erf(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """error function"""

    def identity(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x, converted to the type of y"""

    def reciprocal(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """1 / x"""

    def atan2(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """angle of the point (b, x)"""

    def floor_mod(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x - floor(x / b) b: remainder with the sign of b"""

    def relu(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x clipped to lower..upper; below lower: lower + slope (x - lower)"""

    def tanh(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """tanh x"""

    def sigmoid(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """1 / (1 + e^-x)"""

    def elu(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x where x > 0, else alpha (e^x - 1)"""

    def gelu(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x Phi(x), Phi the normal distribution"""

    def softplus(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """log(1 + e^(beta x)) / beta"""

    def swish(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x sigmoid(beta x)"""

    def gelu_tanh(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2"""

    def relu_bwd(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """dy times the derivative of relu at x"""

    def tanh_bwd(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """dy times the derivative of tanh at x"""

    def sigmoid_bwd(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """dy times the derivative of sigmoid at x"""

    def elu_bwd(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """dy times the derivative of elu at x"""

    def gelu_bwd(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """dy times the derivative of gelu at x"""

    def softplus_bwd(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """dy times the derivative of softplus at x"""

    def swish_bwd(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """dy times the derivative of swish at x"""

    def gelu_tanh_bwd(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """dy times the derivative of gelu_tanh at x"""

    def cmp_eq(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x = b"""

    def cmp_neq(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x differs from b"""

    def cmp_gt(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x > b"""

    def cmp_ge(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x >= b"""

    def cmp_lt(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x < b"""

    def cmp_le(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x <= b"""

    def logical_and(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x and b"""

    def logical_or(self, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x or b"""

    def logical_not(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """not x"""

    def gen_index(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """index of the element along `axis`"""

    def select(self, b: Tensor | float, t: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x where t holds, else b"""

    def silu(self, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
        """x sigmoid(beta x)"""

    def reduce_add(self, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
        """
        y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`
        """

    def reduce_mul(self, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
        """
        y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`
        """

    def reduce_min(self, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
        """
        y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`
        """

    def reduce_max(self, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
        """
        y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`
        """

    def reduce_amax(self, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
        """
        y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`
        """

    def reduce_avg(self, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
        """
        y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`
        """

    def reduce_norm1(self, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
        """
        y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`
        """

    def reduce_norm2(self, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
        """
        y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`
        """

    def reduce_mul_no_zeros(self, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
        """
        y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`
        """

    def sum(self, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
        """
        y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`
        """

    def mean(self, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
        """
        y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`
        """

    def reduce_by(self, *, axes: int | Sequence[int] = (), init: float = 0, combine: Callable[..., Tensor] | None = None) -> Tensor:
        """
        y = combine(.. combine(combine(init, x_0), x_1) .., x_n) over `axes`, elements in row-major order; an engine may reorder, so `combine` should be associative and commutative with `init` as its neutral element
        """

    def argmax(self, *, axis: int = -1) -> Tensor:
        """
        y = the smallest i for which x[.., i, ..] is the maximum along the axis; a NaN is the maximum
        """

    def top_k(self, *, k: int = 1, axis: int = -1, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        values[.., j, ..] = the j-th largest of x[.., i, ..] along the axis, indices its i; of equal ones the smaller i comes first; a NaN is larger than all numbers
        """

    def cumsum(self, *, axis: int = -1, exclusive: bool = False, reverse: bool = False) -> Tensor:
        """
        y[.., i, ..] = sum of x[.., j, ..] over j <= i along the axis; exclusive: j < i; reverse: j >= i, or j > i
        """

    def matmul(self, b: Tensor | float, m_override: Tensor | float | None = None, n_override: Tensor | float | None = None, k_override: Tensor | float | None = None, *, padding_value: float = 0, tf32: bool = False, fast_sums: bool = False) -> Tensor:
        """
        c[.., m, n] = sum_k a[.., m, k] b[.., k, n]; with overrides, batch i uses only m_i, n_i, k_i of the sizes
        """

    def moe_matmul(self, weight: Tensor | float, first_token_offset: Tensor | float, token_index: Tensor | float | None = None, token_ks: Tensor | float | None = None, *, mode: Literal['none', 'gather', 'scatter'] = 'none', top_k: int = 1) -> Tensor:
        """
        output[to(t)] = token[from(t)] weight[e] for rows t in [offset[i], offset[i+1]), e = i mod experts, the last range ends with the rows; from(t) = token_index[t] for gather, to(t) = token_index[t] top_k + token_ks[t] for scatter, otherwise t; rows that nothing reaches, and indices out of range, give 0
        """

    def moe_matmul_bwd(self, token: Tensor | float, first_token_offset: Tensor | float, *, experts: int = 0) -> Tensor:
        """
        dweight[e] = sum of token[t]^T doutput[t] over the rows t in [offset[i], offset[i+1]) with e = i mod experts; the last range ends with the rows
        """

    def conv_fprop(self, w: Tensor | float, c: Tensor | float | None = None, *, stride: int | Sequence[int] = (), pad: int | Sequence[int] = (), post_pad: int | Sequence[int] = (), dilation: int | Sequence[int] = (), mode: Literal['cross_correlation', 'convolution'] = 'cross_correlation', alpha: float = 1, beta: float = 0, size: int | Sequence[int] = (), groups: int = 0, tf32: bool = False, fast_sums: bool = False) -> Tensor:
        """
        y[n, k, p] = alpha sum_{c, q} x[n, g(k) + c, p stride - pad + q dilation] w[k, c, q] + beta c[n, k, p]; g(k) is the first channel of k's group, terms outside x are left out; mode convolution reads w[k, c, taps - 1 - q]
        """

    def conv_dgrad(self, w: Tensor | float, c: Tensor | float | None = None, *, stride: int | Sequence[int] = (), pad: int | Sequence[int] = (), post_pad: int | Sequence[int] = (), dilation: int | Sequence[int] = (), mode: Literal['cross_correlation', 'convolution'] = 'cross_correlation', alpha: float = 1, beta: float = 0, size: int | Sequence[int] = (), groups: int = 0, tf32: bool = False, fast_sums: bool = False) -> Tensor:
        """
        dx[n, g(k) + c, p stride - pad + q dilation] = alpha sum_{k, p, q} dy[n, k, p] w[k, c, q] + beta c; the gradient of conv_fprop with the same options
        """

    def conv_wgrad(self, x: Tensor | float, c: Tensor | float | None = None, *, stride: int | Sequence[int] = (), pad: int | Sequence[int] = (), post_pad: int | Sequence[int] = (), dilation: int | Sequence[int] = (), mode: Literal['cross_correlation', 'convolution'] = 'cross_correlation', alpha: float = 1, beta: float = 0, size: int | Sequence[int] = (), groups: int = 0, tf32: bool = False, fast_sums: bool = False) -> Tensor:
        """
        dw[k, c, q] = alpha sum_{n, p} dy[n, k, p] x[n, g(k) + c, p stride - pad + q dilation] + beta c[k, c, q]; the gradient of conv_fprop with the same options
        """

    def causal_conv1d(self, weight: Tensor | float, bias: Tensor | float | None = None, *, activation: Literal['none', 'silu'] = 'none', reversed: bool = False) -> Tensor:
        """
        y[b, d, t] = act(bias[d] + sum_{j < k} x[b, d, t - j] weight[d, k - 1 - j]), x is 0 before t = 0; reversed uses weight[d, j]; act is the identity or silu(z) = z / (1 + exp(-z))
        """

    def causal_conv1d_bwd(self, weight: Tensor | float, dy: Tensor | float, bias: Tensor | float | None = None, *, activation: Literal['none', 'silu'] = 'none', reversed: bool = False, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        dz = dy act'(z); dx[t] = sum_j dz[t + j] weight[k - 1 - j]; dweight[k - 1 - j] = sum_{b, t} dz[t] x[t - j]; dbias = sum_{b, t} dz; reversed uses weight[j]
        """

    def b2b_causal_conv1d(self, w_proj: Tensor | float, w_mixer: Tensor | float, skip_bias: Tensor | float, *, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        p_c[t] = sum_j x[c, t - j] w_proj[c, kp - 1 - j] for c = 0, 1, 2; g = p_1 p_2; y[t] = sum_j g[t - j] w_mixer[km - 1 - j] + skip_bias g[t]; y_gated = y p_0; for every batch and channel
        """

    def b2b_causal_conv1d_bwd(self, w_proj: Tensor | float, w_mixer: Tensor | float, skip_bias: Tensor | float, y: Tensor | float, dy: Tensor | float, *, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        dy is the gradient of y_gated; dp_0 = dy y; e = dy p_0; dg[t] = sum_j e[t + j] w_mixer[km - 1 - j] + skip_bias e[t]; dp_1 = dg p_2; dp_2 = dg p_1; dw_mixer[km - 1 - j] = sum e[t] g[t - j]; dskip_bias = sum e g; dx[c, t] = sum_j dp_c[t + j] w_proj[c, kp - 1 - j]; dw_proj[c, kp - 1 - j] = sum dp_c[t] x[c, t - j]
        """

    def layer_norm(self, scale: Tensor | float | None = None, bias: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, variance: Tensor | float | None = None, running_mean: Tensor | float | None = None, running_var: Tensor | float | None = None, epsilon: Tensor | float | None = None, momentum: Tensor | float = 0.1, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
        """
        y = scale (x - mean) inv_variance + bias, inv_variance = 1 / sqrt(E[(x - mean)^2] + eps); rms: mean = 0; zero_centered: 1 + scale instead of scale; new_running = (1 - momentum) running + momentum new, with the unbiased variance (of one element: 0)
        """

    def instance_norm(self, scale: Tensor | float | None = None, bias: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, variance: Tensor | float | None = None, running_mean: Tensor | float | None = None, running_var: Tensor | float | None = None, epsilon: Tensor | float | None = None, momentum: Tensor | float = 0.1, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
        """
        y = scale (x - mean) inv_variance + bias, inv_variance = 1 / sqrt(E[(x - mean)^2] + eps); rms: mean = 0; zero_centered: 1 + scale instead of scale; new_running = (1 - momentum) running + momentum new, with the unbiased variance (of one element: 0)
        """

    def batch_norm(self, scale: Tensor | float | None = None, bias: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, variance: Tensor | float | None = None, running_mean: Tensor | float | None = None, running_var: Tensor | float | None = None, epsilon: Tensor | float | None = None, momentum: Tensor | float = 0.1, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
        """
        y = scale (x - mean) inv_variance + bias, inv_variance = 1 / sqrt(E[(x - mean)^2] + eps); rms: mean = 0; zero_centered: 1 + scale instead of scale; new_running = (1 - momentum) running + momentum new, with the unbiased variance (of one element: 0)
        """

    def group_norm(self, scale: Tensor | float | None = None, bias: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, variance: Tensor | float | None = None, running_mean: Tensor | float | None = None, running_var: Tensor | float | None = None, epsilon: Tensor | float | None = None, momentum: Tensor | float = 0.1, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
        """
        y = scale (x - mean) inv_variance + bias, inv_variance = 1 / sqrt(E[(x - mean)^2] + eps); rms: mean = 0; zero_centered: 1 + scale instead of scale; new_running = (1 - momentum) running + momentum new, with the unbiased variance (of one element: 0)
        """

    def rms_norm(self, scale: Tensor | float | None = None, bias: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, variance: Tensor | float | None = None, running_mean: Tensor | float | None = None, running_var: Tensor | float | None = None, epsilon: Tensor | float | None = None, momentum: Tensor | float = 0.1, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
        """
        y = scale (x - mean) inv_variance + bias, inv_variance = 1 / sqrt(E[(x - mean)^2] + eps); rms: mean = 0; zero_centered: 1 + scale instead of scale; new_running = (1 - momentum) running + momentum new, with the unbiased variance (of one element: 0)
        """

    def ada_layer_norm(self, scale: Tensor | float | None = None, bias: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, variance: Tensor | float | None = None, running_mean: Tensor | float | None = None, running_var: Tensor | float | None = None, epsilon: Tensor | float | None = None, momentum: Tensor | float = 0.1, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
        """
        y = scale (x - mean) inv_variance + bias, inv_variance = 1 / sqrt(E[(x - mean)^2] + eps); rms: mean = 0; zero_centered: 1 + scale instead of scale; new_running = (1 - momentum) running + momentum new, with the unbiased variance (of one element: 0)
        """

    def layer_norm_bwd(self, dy: Tensor | float, scale: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, epsilon: Tensor | float | None = None, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
        """
        with z = (x - mean) inv_variance, g = scale dy and E the mean over elements that share statistics: dx = inv_variance (g - E[g] - z E[g z]) (rms: without E[g]; batch phase=inference: inv_variance g); dscale = sum dy z, dbias = sum dy over elements that share a scale
        """

    def instance_norm_bwd(self, dy: Tensor | float, scale: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, epsilon: Tensor | float | None = None, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
        """
        with z = (x - mean) inv_variance, g = scale dy and E the mean over elements that share statistics: dx = inv_variance (g - E[g] - z E[g z]) (rms: without E[g]; batch phase=inference: inv_variance g); dscale = sum dy z, dbias = sum dy over elements that share a scale
        """

    def batch_norm_bwd(self, dy: Tensor | float, scale: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, epsilon: Tensor | float | None = None, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
        """
        with z = (x - mean) inv_variance, g = scale dy and E the mean over elements that share statistics: dx = inv_variance (g - E[g] - z E[g z]) (rms: without E[g]; batch phase=inference: inv_variance g); dscale = sum dy z, dbias = sum dy over elements that share a scale
        """

    def group_norm_bwd(self, dy: Tensor | float, scale: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, epsilon: Tensor | float | None = None, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
        """
        with z = (x - mean) inv_variance, g = scale dy and E the mean over elements that share statistics: dx = inv_variance (g - E[g] - z E[g z]) (rms: without E[g]; batch phase=inference: inv_variance g); dscale = sum dy z, dbias = sum dy over elements that share a scale
        """

    def rms_norm_bwd(self, dy: Tensor | float, scale: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, epsilon: Tensor | float | None = None, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
        """
        with z = (x - mean) inv_variance, g = scale dy and E the mean over elements that share statistics: dx = inv_variance (g - E[g] - z E[g z]) (rms: without E[g]; batch phase=inference: inv_variance g); dscale = sum dy z, dbias = sum dy over elements that share a scale
        """

    def ada_layer_norm_bwd(self, dy: Tensor | float, scale: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, epsilon: Tensor | float | None = None, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
        """
        with z = (x - mean) inv_variance, g = scale dy and E the mean over elements that share statistics: dx = inv_variance (g - E[g] - z E[g z]) (rms: without E[g]; batch phase=inference: inv_variance g); dscale = sum dy z, dbias = sum dy over elements that share a scale
        """

    def gen_stats(self, *, wanted: str | Sequence[str] = ()) -> Outputs:
        """sum[c] = sum of x over all dimensions but 1, sq_sum[c] = sum of x^2"""

    def bn_bwd_weights(self, x: Tensor | float, mean: Tensor | float, inv_std: Tensor | float, scale: Tensor | float, *, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        dscale = sum dy (x - mean) inv_std, dbias = sum dy; with N elements for each channel eq_dy_scale = scale inv_std, eq_x_scale = -eq_dy_scale inv_std dscale / N, eq_bias = -eq_dy_scale dbias / N - eq_x_scale mean, so that dx = eq_dy_scale dy + eq_x_scale x + eq_bias
        """

    def lrn(self, *, n: int = 5, alpha: float = 1e-04, beta: float = 0.75, k: float = 2) -> Tensor:
        """
        y[c] = x[c] / (k + alpha / n sum x[i]^2)^beta over the channels i = c - floor((n - 1) / 2) .. c + ceil((n - 1) / 2)
        """

    def lrn_bwd(self, dy: Tensor | float, y: Tensor | float | None = None, *, n: int = 5, alpha: float = 1e-04, beta: float = 0.75, k: float = 2) -> Tensor:
        """
        with s = k + alpha / n sum x^2 of lrn: dx[c] = dy[c] s[c]^-beta - 2 alpha beta / n x[c] sum dy[i] x[i] s[i]^(-beta - 1) over the channels i whose window holds c; y is not needed and ignored
        """

    def divisive_norm(self, mean: Tensor | float | None = None, *, n: int = 5, alpha: float = 1e-04, beta: float = 0.75, k: float = 2) -> Tensor:
        """
        v = x - mean (0 unless given); y[p] = v[p] / (k + alpha / n^d sum v[q]^2)^beta over the d-dimensional window of the same plane with |q - p| <= floor((n - 1) / 2) in each spatial dimension
        """

    def divisive_norm_bwd(self, dy: Tensor | float, mean: Tensor | float | None = None, *, n: int = 5, alpha: float = 1e-04, beta: float = 0.75, k: float = 2, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        with v and s = k + alpha / n^d sum v^2 of divisive_norm: dx[p] = dy[p] s[p]^-beta - 2 alpha beta / n^d v[p] sum dy[q] v[q] s[q]^(-beta - 1) over the same window; dmean = -dx
        """

    def softmax(self, sink: Tensor | float | None = None, *, axes: int | Sequence[int] = (-1,), stats_log2: bool = False, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        m = max(max x, sink), l = sum exp(x - m) + exp(sink - m); softmax: y = exp(x - m) / l; log_softmax: y = x - m - ln l; max = m, sum_exp = l, stats = m + ln l (times log2 e with stats_log2); where all is -inf: y = 0 (log: -inf), sum_exp = 0, stats = -inf
        """

    def log_softmax(self, sink: Tensor | float | None = None, *, axes: int | Sequence[int] = (-1,), stats_log2: bool = False, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        m = max(max x, sink), l = sum exp(x - m) + exp(sink - m); softmax: y = exp(x - m) / l; log_softmax: y = x - m - ln l; max = m, sum_exp = l, stats = m + ln l (times log2 e with stats_log2); where all is -inf: y = 0 (log: -inf), sum_exp = 0, stats = -inf
        """

    def softmax_bwd(self, dy: Tensor | float, *, axes: int | Sequence[int] = (-1,)) -> Tensor:
        """
        softmax_bwd: dx = y (dy - sum y dy); log_softmax_bwd: dx = dy - exp(y) sum dy; sums over `axes`
        """

    def log_softmax_bwd(self, dy: Tensor | float, *, axes: int | Sequence[int] = (-1,)) -> Tensor:
        """
        softmax_bwd: dx = y (dy - sum y dy); log_softmax_bwd: dx = dy - exp(y) sum dy; sums over `axes`
        """

    def cross_entropy(self, target: Tensor | float, *, axis: int = -1, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        stats = ln sum exp(logits) along the axis, loss = stats - logits[target]; loss = 0 for rows whose target is not in 0..classes - 1, which so are left out
        """

    def cross_entropy_bwd(self, target: Tensor | float, stats: Tensor | float, dloss: Tensor | float, *, axis: int = -1) -> Tensor:
        """
        dlogits = dloss exp(logits - stats), and dloss less at the target; 0 for rows whose target is not in 0..classes - 1
        """

    def sdpa_fwd(self, k: Tensor | float, v: Tensor | float, scale: Tensor | float = 1, bias: Tensor | float | None = None, seq_len_q: Tensor | float | None = None, seq_len_kv: Tensor | float | None = None, cu_seq_len_q: Tensor | float | None = None, cu_seq_len_kv: Tensor | float | None = None, page_table_k: Tensor | float | None = None, page_table_v: Tensor | float | None = None, block_mask: Tensor | float | None = None, sink: Tensor | float | None = None, dropout_seed: Tensor | float | None = None, dropout_offset: Tensor | float | None = None, dropout_mask: Tensor | float | None = None, dropout_scale: Tensor | float | None = None, alibi_slopes: Tensor | float | None = None, descale_q: Tensor | float | None = None, descale_k: Tensor | float | None = None, descale_v: Tensor | float | None = None, descale_s: Tensor | float | None = None, scale_s: Tensor | float | None = None, scale_o: Tensor | float | None = None, *, left: int | None = None, right: int | None = None, align: Literal['top_left', 'bottom_right'] = 'top_left', alibi: bool = False, dropout: float = 0, stats_log2: bool = False, score_mod: Callable[..., Tensor] | None = None, max_seq_kv: int = 0, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        s = mask(score_mod(scale q k^T) + bias + alibi); p = dropout(softmax([s, sink])); o = p v; stats = log sum exp s; what is masked contributes nothing, rows with nothing to attend to give o = 0. Beyond its length a sequence is not read, and o and sum_exp are 0, stats and max -inf there; packed results are not written there; rng_dump has a number for each score
        """

    def sdpa_bwd(self, k: Tensor | float, v: Tensor | float, o: Tensor | float, do: Tensor | float, stats: Tensor | float, scale: Tensor | float = 1, bias: Tensor | float | None = None, seq_len_q: Tensor | float | None = None, seq_len_kv: Tensor | float | None = None, cu_seq_len_q: Tensor | float | None = None, cu_seq_len_kv: Tensor | float | None = None, block_mask: Tensor | float | None = None, sink: Tensor | float | None = None, dropout_seed: Tensor | float | None = None, dropout_offset: Tensor | float | None = None, dropout_mask: Tensor | float | None = None, dropout_scale: Tensor | float | None = None, alibi_slopes: Tensor | float | None = None, descale_q: Tensor | float | None = None, descale_k: Tensor | float | None = None, descale_v: Tensor | float | None = None, descale_s: Tensor | float | None = None, scale_s: Tensor | float | None = None, descale_o: Tensor | float | None = None, descale_do: Tensor | float | None = None, descale_dp: Tensor | float | None = None, scale_dq: Tensor | float | None = None, scale_dk: Tensor | float | None = None, scale_dv: Tensor | float | None = None, scale_dp: Tensor | float | None = None, delta: Tensor | float | None = None, *, left: int | None = None, right: int | None = None, align: Literal['top_left', 'bottom_right'] = 'top_left', alibi: bool = False, dropout: float = 0, stats_log2: bool = False, score_mod: Callable[..., Tensor] | None = None, score_mod_bwd: Callable[..., Tensor] | None = None, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        p = exp(s - stats); dv = dropout(p)^T do; ds = p (dropout(do v^T) - rowsum(do o)); dbias = sum ds; dsink = -sum exp(sink - stats) rowsum(do o); ds = score_mod_bwd(ds); dq = scale ds k; dk = scale ds^T q. Beyond its length a sequence is not read, and every gradient is 0 there; packed ones are not written there
        """

    def rope(self, freqs: Tensor | float, *, scale: float = 1, rope_dim: int = 0) -> Tensor:
        """
        P = d - r, c_k = cos(freqs[s, k]), s_k = sin(freqs[s, k]), k < r/2: y[P+k] = scale (x[P+k] c_k - x[P+r/2+k] s_k), y[P+r/2+k] = scale (x[P+r/2+k] c_k + x[P+k] s_k), the first P elements are multiplied by scale
        """

    def rope_bwd(self, freqs: Tensor | float, *, scale: float = 1, rope_dim: int = 0) -> Tensor:
        """
        P = d - r, c_k = cos(freqs[s, k]), s_k = sin(freqs[s, k]), k < r/2: dx[P+k] = scale (dy[P+k] c_k + dy[P+r/2+k] s_k), dx[P+r/2+k] = scale (dy[P+r/2+k] c_k - dy[P+k] s_k), the first P elements are multiplied by scale
        """

    def band_mask(self, fill: Tensor | float, seq_len_q: Tensor | float | None = None, seq_len_kv: Tensor | float | None = None, cu_seq_len_q: Tensor | float | None = None, cu_seq_len_kv: Tensor | float | None = None, left: Tensor | float | None = None, shift_right: Tensor | float | None = None, *, compare: Literal['add', 'mul', 'min', 'max', 'sqrt', 'add_square', 'div', 'mod', 'pow', 'sub', 'abs', 'ceil', 'cos', 'exp', 'floor', 'log', 'neg', 'rsqrt', 'sin', 'tan', 'erf', 'identity', 'reciprocal', 'atan2', 'floor_mod', 'relu', 'tanh', 'sigmoid', 'elu', 'gelu', 'softplus', 'swish', 'gelu_tanh', 'relu_bwd', 'tanh_bwd', 'sigmoid_bwd', 'elu_bwd', 'gelu_bwd', 'softplus_bwd', 'swish_bwd', 'gelu_tanh_bwd', 'cmp_eq', 'cmp_neq', 'cmp_gt', 'cmp_ge', 'cmp_lt', 'cmp_le', 'logical_and', 'logical_or', 'logical_not', 'gen_index', 'select'] = 'cmp_ge') -> Tensor:
        """
        y = keep ? x : fill, row and col the indices of dimensions 2 and 3; without left: keep = compare(row + off + shift_right, col); with left: keep = compare(col + left - off, row); off = length of kv - length of q where lengths are given, otherwise 0
        """

    def paged_load(self, page_table: Tensor | float, seq_len: Tensor | float | None = None, *, size: int = 0, transposed: bool = False) -> Tensor:
        """
        y[b, h, s, :] = container[page_table[b, 0, s / block, 0], h, s % block, :] for s < seq_len[b], 0 beyond it and for pages outside the container; transposed: y[b, h, :, s]
        """

    def resample(self, *, mode: Literal['nearest', 'bilinear', 'avg_pool_include', 'avg_pool_exclude', 'max_pool'] = 'max_pool', window: int | Sequence[int | fractions.Fraction] = (), stride: int | Sequence[int | fractions.Fraction] = (), pad: int | Sequence[int | fractions.Fraction] = (), post_pad: int | Sequence[int | fractions.Fraction] = (), padding: Literal['automatic', 'zero', 'neg_inf', 'edge'] = 'automatic', size: int | Sequence[int] = (), alpha: float = 1, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        with s = o stride - pad in each dimension: nearest gives alpha x[floor(s + 1/2)]; bilinear mixes x[floor(s)] and x[floor(s) + 1] by the fraction of s; pooling gives alpha times the mean (over the whole window, or over its elements inside x: exclude) or the maximum of x[i] for s <= i < s + window; index is the place of the first maximum in the window, row-major; outside x there is 0, -infinity or the nearest element (padding); the mean of nothing is 0; a NaN is the maximum
        """

    def max_pool(self, *, mode: Literal['nearest', 'bilinear', 'avg_pool_include', 'avg_pool_exclude', 'max_pool'] = 'max_pool', window: int | Sequence[int | fractions.Fraction] = (), stride: int | Sequence[int | fractions.Fraction] = (), pad: int | Sequence[int | fractions.Fraction] = (), post_pad: int | Sequence[int | fractions.Fraction] = (), padding: Literal['automatic', 'zero', 'neg_inf', 'edge'] = 'automatic', size: int | Sequence[int] = (), alpha: float = 1, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        with s = o stride - pad in each dimension: nearest gives alpha x[floor(s + 1/2)]; bilinear mixes x[floor(s)] and x[floor(s) + 1] by the fraction of s; pooling gives alpha times the mean (over the whole window, or over its elements inside x: exclude) or the maximum of x[i] for s <= i < s + window; index is the place of the first maximum in the window, row-major; outside x there is 0, -infinity or the nearest element (padding); the mean of nothing is 0; a NaN is the maximum
        """

    def avg_pool(self, *, mode: Literal['nearest', 'bilinear', 'avg_pool_include', 'avg_pool_exclude', 'max_pool'] = 'avg_pool_include', window: int | Sequence[int | fractions.Fraction] = (), stride: int | Sequence[int | fractions.Fraction] = (), pad: int | Sequence[int | fractions.Fraction] = (), post_pad: int | Sequence[int | fractions.Fraction] = (), padding: Literal['automatic', 'zero', 'neg_inf', 'edge'] = 'automatic', size: int | Sequence[int] = (), alpha: float = 1, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        with s = o stride - pad in each dimension: nearest gives alpha x[floor(s + 1/2)]; bilinear mixes x[floor(s)] and x[floor(s) + 1] by the fraction of s; pooling gives alpha times the mean (over the whole window, or over its elements inside x: exclude) or the maximum of x[i] for s <= i < s + window; index is the place of the first maximum in the window, row-major; outside x there is 0, -infinity or the nearest element (padding); the mean of nothing is 0; a NaN is the maximum
        """

    def resample_bwd(self, x: Tensor | float | None = None, y: Tensor | float | None = None, index: Tensor | float | None = None, *, mode: Literal['nearest', 'bilinear', 'avg_pool_include', 'avg_pool_exclude', 'max_pool'] = 'max_pool', window: int | Sequence[int | fractions.Fraction] = (), stride: int | Sequence[int | fractions.Fraction] = (), pad: int | Sequence[int | fractions.Fraction] = (), post_pad: int | Sequence[int | fractions.Fraction] = (), padding: Literal['automatic', 'zero', 'neg_inf', 'edge'] = 'automatic', size: int | Sequence[int] = (), alpha: float = 1) -> Tensor:
        """
        dx = alpha (d resample / d x)^T dy; max_pool sends dy to the element that index names, or to the first maximum of the window when only x is given; y is not needed and ignored
        """

    def affine_grid(self, *, size: int | Sequence[int] = ()) -> Tensor:
        """
        grid[n, i, j] = theta[n] (u(j), u(i), 1)^T with u(j) = -1 + 2 j / (w - 1), 0 for a size of 1; in three dimensions theta[n] (u(k), u(j), u(i), 1)^T: the last dimension of the image comes first
        """

    def affine_grid_bwd(self) -> Tensor:
        """
        dtheta[n] = sum_{i, j} dgrid[n, i, j] (u(j), u(i), 1), u as in affine_grid
        """

    def grid_sample(self, grid: Tensor | float) -> Tensor:
        """
        y[n, c, i, j] = x[n, c] at row (grid[n, i, j, 1] + 1) (h - 1) / 2 and column (grid[n, i, j, 0] + 1) (w - 1) / 2, interpolated linearly; x is 0 outside; places that are not finite give 0
        """

    def grid_sample_bwd(self, grid: Tensor | float, dy: Tensor | float, *, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        dx gathers dy with the weights of the interpolation; dgrid = sum_c dy (d y / d grid), with the slope of the cell that holds the place (the upper one at its border)
        """

    def dropout(self, seed: Tensor | float = 0, offset: Tensor | float = 0, *, p: float = 0.5, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        mask_i = u_i < 1 - p with the u_i of rng for the same seed and offset, i row-major; y = mask ? x / (1 - p) : 0
        """

    def dropout_bwd(self, mask: Tensor | float, *, p: float = 0.5) -> Tensor:
        """dx = mask ? dy / (1 - p) : 0"""

    def reshape(self, *, size: int | Sequence[int] = (), mode: Literal['view', 'logical'] = 'logical') -> Tensor:
        """
        logical: the i-th element of y in row-major order is the i-th of x in row-major order, whatever the strides; view: both in the order of their strides (so y may be a transposed view of x)
        """

    def transpose(self, *, perm: int | Sequence[int] = ()) -> Tensor:
        """y[i_perm[0], i_perm[1], ..] = x[i_0, i_1, ..]"""

    def slice(self, *, start: int | Sequence[int] = (), limit: int | Sequence[int] = (), stride: int | Sequence[int] = ()) -> Tensor:
        """
        y[i_0, i_1, ..] = x[start_0 + stride_0 i_0, start_1 + stride_1 i_1, ..]
        """

    def gather(self, index: Tensor | float, *, axis: int = 0, mode: Literal['rows', 'elements'] = 'rows') -> Tensor:
        """
        rows: y[a.., i.., b..] = x[a.., index[i..], b..], where the axis of x lies between a.. and b..; elements: y[a.., i, b..] = x[a.., index[a.., i, b..], b..]; 0 where the index is not in 0..size - 1 of the axis
        """

    def embedding(self, index: Tensor | float, *, axis: int = 0, mode: Literal['rows', 'elements'] = 'rows') -> Tensor:
        """
        rows: y[a.., i.., b..] = x[a.., index[i..], b..], where the axis of x lies between a.. and b..; elements: y[a.., i, b..] = x[a.., index[a.., i, b..], b..]; 0 where the index is not in 0..size - 1 of the axis
        """

    def scatter_add(self, index: Tensor | float, x: Tensor | float | None = None, *, axis: int = 0, mode: Literal['rows', 'elements'] = 'rows', size: int = 0) -> Tensor:
        """
        y = x (0 without it), then rows: y[a.., index[i..], b..] += updates[a.., i.., b..]; elements: y[a.., index[a.., i, b..], b..] += updates[a.., i, b..]; updates whose index is not in 0..size - 1 of the axis are left out
        """

    def block_scale_quantize(self, *, block: int | Sequence[int] = (32,), axis: int = -1, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        scale = max |x| over the block / largest value of y's type (448, 57344, 6), rounded to the type of scale: e8m0 rounds up, 2^ceil(log2(..)), so that nothing overflows (OCP MX rounds down), the others to nearest; y = round(x / scale), saturated, 0 where scale is 0
        """

    def block_scale_dequantize(self, scale: Tensor | float, *, block: int | Sequence[int] = (32,), neg_scale: bool = False) -> Tensor:
        """
        y[i_0, i_1, ..] = x[i_0, i_1, ..] scale[i_0 / b_0, i_1 / b_1, ..], with neg_scale times -1; `block` gives the last of the b_k, the others are 1
        """

    def rnn_fwd(self, weight: Tensor | float, h0: Tensor | float | None = None, c0: Tensor | float | None = None, seq_lengths: Tensor | float | None = None, *, mode: Literal['relu', 'tanh', 'lstm', 'gru'] = 'lstm', hidden: int = 0, proj: int = 0, layers: int = 1, bidirectional: bool = False, input: Literal['linear', 'skip'] = 'linear', bias: Literal['none', 'input', 'recurrent', 'both'] = 'both', layout: Literal['seq_major', 'batch_major'] = 'seq_major', packed: bool = False, clip_min: float | None = None, clip_max: float | None = None, clip_nan: bool = False, dropout: float = 0, seed: int = 0, phase: Literal['training', 'inference'] = 'training', wanted: str | Sequence[str] = ()) -> Outputs:
        """
        with a_g = W_g x_t + bW_g and b_g = R_g h + bR_g: relu, tanh h' = f(a + b); lstm i, f, o = sigmoid(a + b), g = tanh(a_g + b_g), c' = clip(f c + i g), h' = P (o tanh(c')); gru r, z = sigmoid(a + b), n = tanh(a_n + r b_n), h' = (1 - z) n + z h; the output of a layer is the input of the next, with dropout between them when training: element (layer, t, batch, feature) in row-major order is dropped when its Philox word of `seed` is below the probability, otherwise divided by 1 - dropout
        """

    def rnn_bwd_data(self, weight: Tensor | float, dy: Tensor | float, y: Tensor | float | None = None, h0: Tensor | float | None = None, c0: Tensor | float | None = None, seq_lengths: Tensor | float | None = None, dhn: Tensor | float | None = None, dcn: Tensor | float | None = None, *, mode: Literal['relu', 'tanh', 'lstm', 'gru'] = 'lstm', hidden: int = 0, proj: int = 0, layers: int = 1, bidirectional: bool = False, input: Literal['linear', 'skip'] = 'linear', bias: Literal['none', 'input', 'recurrent', 'both'] = 'both', layout: Literal['seq_major', 'batch_major'] = 'seq_major', packed: bool = False, clip_min: float | None = None, clip_max: float | None = None, clip_nan: bool = False, dropout: float = 0, seed: int = 0, phase: Literal['training', 'inference'] = 'training', wanted: str | Sequence[str] = ()) -> Outputs:
        """
        dx, dh0, dc0 = gradients of <y, dy> + <hn, dhn> + <cn, dcn>, with y, hn, cn as rnn_fwd computes them; where the cell state was clipped its gradient is 0
        """

    def rnn_bwd_weights(self, weight: Tensor | float, dy: Tensor | float, h0: Tensor | float | None = None, c0: Tensor | float | None = None, seq_lengths: Tensor | float | None = None, dhn: Tensor | float | None = None, dcn: Tensor | float | None = None, *, mode: Literal['relu', 'tanh', 'lstm', 'gru'] = 'lstm', hidden: int = 0, proj: int = 0, layers: int = 1, bidirectional: bool = False, input: Literal['linear', 'skip'] = 'linear', bias: Literal['none', 'input', 'recurrent', 'both'] = 'both', layout: Literal['seq_major', 'batch_major'] = 'seq_major', packed: bool = False, clip_min: float | None = None, clip_max: float | None = None, clip_nan: bool = False, dropout: float = 0, seed: int = 0, phase: Literal['training', 'inference'] = 'training') -> Tensor:
        """
        dweight = gradient of <y, dy> + <hn, dhn> + <cn, dcn>, with y, hn, cn as rnn_fwd computes them
        """

    def ctc_loss(self, labels: Tensor | float, label_lengths: Tensor | float, input_lengths: Tensor | float, *, blank: int = 0, log_probs: bool = False, zero_infinity: bool = False, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        cost = -log sum over paths p that become the labels when repeats are merged and blanks removed of prod_t softmax(logits_t)[p_t]; gradients = softmax(logits_t)[c] - P(p_t = c | labels) (log_probs: minus the second term alone), 0 past the input length. When no path is long enough the cost is infinite (zero_infinity: 0) and the gradient 0
        """

    def gnn_agg(self, indices: Tensor | float, node: Tensor | float | None = None, edge: Tensor | float | None = None, concat: Tensor | float | None = None, edge_map: Tensor | float | None = None, *, mode: Literal['sum', 'mean', 'max', 'min'] = 'sum', wanted: str | Sequence[str] = ()) -> Outputs:
        """
        y[v] = [agg node[indices[i]] | agg edge[edge_map[i]] | concat[v]] over the edges offsets[v] <= i < offsets[v + 1], agg = sum, mean, max or min element by element; edge_map is the identity unless given; without edges agg is 0; positions holds the i of the first maximum or minimum, -1 without edges; a NaN wins; edges whose index is out of range are left out
        """

    def gnn_agg_bwd(self, offsets: Tensor | float, indices: Tensor | float, edge_map: Tensor | float | None = None, positions: Tensor | float | None = None, *, mode: Literal['sum', 'mean', 'max', 'min'] = 'sum', sources: int = 0, edges: int = 0, node_features: int = 0, edge_features: int = 0, wanted: str | Sequence[str] = ()) -> Outputs:
        """
        for every edge i of destination v: dnode[indices[i]] += g and dedge[edge_map[i]] += g, where g is the part of dy[v] for sum, divided by the number of edges for mean, and only where positions names i for max and min; dconcat[v] is the rest of dy[v]
        """

class Outputs(Tensor):
    """
    The outputs of an operation that has several. It is its first output; all are found by name, and in order when it is unpacked.
    """

    def __getitem__(self, arg: str, /) -> Tensor: ...

    def __iter__(self) -> Iterator[Tensor]: ...

    def __len__(self) -> int: ...

class Graph:
    """
    A computation: inputs, operations on them, and the results that are stored.
    """

    def __init__(self) -> None: ...

    @staticmethod
    def parse(text: str) -> Graph:
        """Reads the text form."""

    @staticmethod
    def load(saved: str) -> Graph:
        """Reads what save() wrote."""

    def save(self) -> str:
        """The text form with a version and a checksum."""

    def text(self) -> str:
        """The text form."""

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

    def input(self, name: str, dtype: object, dims: Sequence[int], *, layout: str = '', strides: Sequence[int] = (), alignment: int = 16, uid: int = 0, frozen: bool = False) -> Tensor:
        """
        A tensor whose memory is given at execution. `layout` ("nhwc", "bshd", ...) or `strides` say its order in memory, `frozen` promises that its contents stay the same for all executions of a plan.
        """

    def scalar(self, name: str, dtype: object) -> Tensor:
        """One value that is given at execution."""

    def constant(self, value: float | Sequence[float], dims: Sequence[int] | None = None, dtype: object = 'f32') -> Tensor:
        """A value that is part of the graph; of `dims`, in row-major order."""

    def output(self, tensor: Tensor, name: str = '', dtype: object = None) -> Tensor:
        """
        Marks a result as stored in the caller's memory, under this name and of this type if they are given.
        """

    def __getitem__(self, name: str) -> Tensor: ...

    @property
    def inputs(self) -> list[Tensor]: ...

    @property
    def outputs(self) -> list[Tensor]: ...

    def plan(self, device: str = 'cpu', *, workspace_limit: int | None = None, deterministic: bool = False, fuse: bool = True, engines: Sequence[str] = (), without: Sequence[str] = (), stages: str = '') -> Plan:
        """
        The plan of this graph for a device: "cpu", "cuda", "cuda:1" or, to explain alone, a GPU such as "h200".
        """

    def tune(self, device: str = 'cpu', seconds: float = 1.0, out: str = '') -> str:
        """
        Measures every way to run the steps of this graph and keeps the fastest in the tuning file, which plans made from then on follow, or in the file `out`. Returns a report.
        """

def gradient(loss: Tensor, inputs: Sequence[Tensor], seed: Tensor | None = None) -> list[Tensor]:
    """
    Adds the operations that compute the derivatives of `loss` to its graph and returns one tensor of them for each input. The loss has one element, or `seed` has its sizes (a vector-Jacobian product).
    """

@overload
def sum(x: Tensor, axes: Sequence[int] = []) -> Tensor:
    """The sum over these axes, or over all."""

@overload
def sum(x: Tensor | float, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
    """
    y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`

    x of any rank -> y with reduced axes of size 1, or as declared: a divisor of the size reduces runs of neighbours; any type; integers are exact

    In the text form:

    x = input f32[2,3,4]
    y = reduce_max x axes=1,2
    output y
    """

@overload
def mean(x: Tensor, axes: Sequence[int] = []) -> Tensor:
    """The mean over these axes, or over all."""

@overload
def mean(x: Tensor | float, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
    """
    y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`

    x of any rank -> y with reduced axes of size 1, or as declared: a divisor of the size reduces runs of neighbours; any type; integers are exact

    In the text form:

    x = input f32[2,3,4]
    y = reduce_max x axes=1,2
    output y
    """

def add(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x + b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def mul(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def min(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    the smaller of x and b; NaN wins

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def max(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    the larger of x and b; NaN wins

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def sqrt(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    square root

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def add_square(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x + b^2

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def div(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x / b; integers truncate, x / 0 is 0

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def mod(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    remainder with the sign of x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def pow(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x^b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def sub(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x - b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def abs(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    |x|

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def ceil(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    smallest whole number not below x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def cos(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    cos x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def exp(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    e^x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def floor(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    largest whole number not above x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def log(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    natural logarithm

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def neg(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    -x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def rsqrt(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    1 / sqrt(x)

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def sin(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    sin x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def tan(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    tan x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def erf(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    error function

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def identity(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x, converted to the type of y

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def reciprocal(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    1 / x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def atan2(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    angle of the point (b, x)

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def floor_mod(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x - floor(x / b) b: remainder with the sign of b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def relu(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x clipped to lower..upper; below lower: lower + slope (x - lower)

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def tanh(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    tanh x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def sigmoid(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    1 / (1 + e^-x)

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def elu(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x where x > 0, else alpha (e^x - 1)

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def gelu(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x Phi(x), Phi the normal distribution

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def softplus(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    log(1 + e^(beta x)) / beta

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def swish(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x sigmoid(beta x)

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def gelu_tanh(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def relu_bwd(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    dy times the derivative of relu at x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def tanh_bwd(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    dy times the derivative of tanh at x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def sigmoid_bwd(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    dy times the derivative of sigmoid at x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def elu_bwd(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    dy times the derivative of elu at x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def gelu_bwd(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    dy times the derivative of gelu at x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def softplus_bwd(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    dy times the derivative of softplus at x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def swish_bwd(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    dy times the derivative of swish at x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def gelu_tanh_bwd(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    dy times the derivative of gelu_tanh at x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def cmp_eq(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x = b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def cmp_neq(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x differs from b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def cmp_gt(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x > b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def cmp_ge(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x >= b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def cmp_lt(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x < b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def cmp_le(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x <= b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def logical_and(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x and b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def logical_or(x: Tensor | float, b: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x or b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def logical_not(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    not x

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def gen_index(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    index of the element along `axis`

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def select(x: Tensor | float, b: Tensor | float, t: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x where t holds, else b

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def silu(x: Tensor | float, *, alpha1: float = 1, alpha2: float = 1, lower: float = 0, upper: float = ..., slope: float = 0, alpha: float = 1, beta: float = 1, axis: int = 0) -> Tensor:
    """
    x sigmoid(beta x)

    x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, add_square, exp, select)

    In the text form:

    x = input f32[2,3]
    b = input f32[1,3]
    y = relu (add x b)
    output y
    """

def reduce_add(x: Tensor | float, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
    """
    y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`

    x of any rank -> y with reduced axes of size 1, or as declared: a divisor of the size reduces runs of neighbours; any type; integers are exact

    In the text form:

    x = input f32[2,3,4]
    y = reduce_max x axes=1,2
    output y
    """

def reduce_mul(x: Tensor | float, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
    """
    y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`

    x of any rank -> y with reduced axes of size 1, or as declared: a divisor of the size reduces runs of neighbours; any type; integers are exact

    In the text form:

    x = input f32[2,3,4]
    y = reduce_max x axes=1,2
    output y
    """

def reduce_min(x: Tensor | float, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
    """
    y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`

    x of any rank -> y with reduced axes of size 1, or as declared: a divisor of the size reduces runs of neighbours; any type; integers are exact

    In the text form:

    x = input f32[2,3,4]
    y = reduce_max x axes=1,2
    output y
    """

def reduce_max(x: Tensor | float, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
    """
    y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`

    x of any rank -> y with reduced axes of size 1, or as declared: a divisor of the size reduces runs of neighbours; any type; integers are exact

    In the text form:

    x = input f32[2,3,4]
    y = reduce_max x axes=1,2
    output y
    """

def reduce_amax(x: Tensor | float, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
    """
    y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`

    x of any rank -> y with reduced axes of size 1, or as declared: a divisor of the size reduces runs of neighbours; any type; integers are exact

    In the text form:

    x = input f32[2,3,4]
    y = reduce_max x axes=1,2
    output y
    """

def reduce_avg(x: Tensor | float, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
    """
    y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`

    x of any rank -> y with reduced axes of size 1, or as declared: a divisor of the size reduces runs of neighbours; any type; integers are exact

    In the text form:

    x = input f32[2,3,4]
    y = reduce_max x axes=1,2
    output y
    """

def reduce_norm1(x: Tensor | float, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
    """
    y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`

    x of any rank -> y with reduced axes of size 1, or as declared: a divisor of the size reduces runs of neighbours; any type; integers are exact

    In the text form:

    x = input f32[2,3,4]
    y = reduce_max x axes=1,2
    output y
    """

def reduce_norm2(x: Tensor | float, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
    """
    y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`

    x of any rank -> y with reduced axes of size 1, or as declared: a divisor of the size reduces runs of neighbours; any type; integers are exact

    In the text form:

    x = input f32[2,3,4]
    y = reduce_max x axes=1,2
    output y
    """

def reduce_mul_no_zeros(x: Tensor | float, group_offset: Tensor | float | None = None, *, axes: int | Sequence[int] = (), deterministic: bool = False, runs: int | Sequence[int] = ()) -> Tensor:
    """
    y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`

    x of any rank -> y with reduced axes of size 1, or as declared: a divisor of the size reduces runs of neighbours; any type; integers are exact

    In the text form:

    x = input f32[2,3,4]
    y = reduce_max x axes=1,2
    output y
    """

def reduce_by(x: Tensor | float, *, axes: int | Sequence[int] = (), init: float = 0, combine: Callable[..., Tensor] | None = None) -> Tensor:
    """
    y = combine(.. combine(combine(init, x_0), x_1) .., x_n) over `axes`, elements in row-major order; an engine may reorder, so `combine` should be associative and commutative with `init` as its neutral element

    x of any rank, real or integer -> y with reduced axes of size 1; combine receives and gives [1] of the compute type

    In the text form:

    x = input f32[2,3,4]
    y = reduce_by x axes=1,2 combine={ acc cur -> add acc (mul cur cur) }
    output y
    """

def argmax(x: Tensor | float, *, axis: int = -1) -> Tensor:
    """
    y = the smallest i for which x[.., i, ..] is the maximum along the axis; a NaN is the maximum

    x of any rank -> y with size 1 along the axis, i64 or i32; x real or integers

    In the text form:

    x = input f32[4,10]
    y = argmax x
    output y
    """

def top_k(x: Tensor | float, *, k: int = 1, axis: int = -1, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    values[.., j, ..] = the j-th largest of x[.., i, ..] along the axis, indices its i; of equal ones the smaller i comes first; a NaN is larger than all numbers

    x of any rank -> values and indices with size k along the axis; x real or integers, indices i64 or i32

    Outputs: values indices (when wanted)

    In the text form:

    x = input f32[4,10]
    v, indices:i = top_k x k=3
    output v
    output i
    """

def cumsum(x: Tensor | float, *, axis: int = -1, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """
    y[.., i, ..] = sum of x[.., j, ..] over j <= i along the axis; exclusive: j < i; reverse: j >= i, or j > i

    x of any sizes -> y of the same; real types and integers

    In the text form:

    x = input f32[4,10]
    y = cumsum x axis=-1
    output y
    """

def matmul(a: Tensor | float, b: Tensor | float, m_override: Tensor | float | None = None, n_override: Tensor | float | None = None, k_override: Tensor | float | None = None, *, padding_value: float = 0, tf32: bool = False, fast_sums: bool = False) -> Tensor:
    """
    c[.., m, n] = sum_k a[.., m, k] b[.., k, n]; with overrides, batch i uses only m_i, n_i, k_i of the sizes

    a [.., m, k], b [.., k, n] -> c [.., m, n]; batch sizes equal, 1, or one a multiple of the other; an operand of fewer dimensions has size 1 in those that it lacks; any type

    In the text form:

    a = input bf16[2,4,8]
    b = input bf16[2,8,3]
    c = matmul a b
    output c bf16
    """

def moe_matmul(token: Tensor | float, weight: Tensor | float, first_token_offset: Tensor | float, token_index: Tensor | float | None = None, token_ks: Tensor | float | None = None, *, mode: Literal['none', 'gather', 'scatter'] = 'none', top_k: int = 1) -> Tensor:
    """
    output[to(t)] = token[from(t)] weight[e] for rows t in [offset[i], offset[i+1]), e = i mod experts, the last range ends with the rows; from(t) = token_index[t] for gather, to(t) = token_index[t] top_k + token_ks[t] for scatter, otherwise t; rows that nothing reaches, and indices out of range, give 0

    token [1, s, k], weight [e, k, n], first_token_offset [b e, 1, 1], token_index and token_ks [1, rows, 1] -> output [1, rows, n]; rows = s, for gather the number of indices; any type, offsets and indices i32 or i64

    In the text form:

    token = input bf16[1,6,4]
    weight = input bf16[2,4,3]
    offset = input i32[2,1,1]
    y = moe_matmul token weight offset
    output y bf16
    """

def moe_matmul_bwd(doutput: Tensor | float, token: Tensor | float, first_token_offset: Tensor | float, *, experts: int = 0) -> Tensor:
    """
    dweight[e] = sum of token[t]^T doutput[t] over the rows t in [offset[i], offset[i+1]) with e = i mod experts; the last range ends with the rows

    doutput [1, s, n], token [1, s, k], first_token_offset [b e, 1, 1] -> dweight [e, k, n]; any type, offsets i32 or i64

    In the text form:

    doutput = input bf16[1,6,3]
    token = input bf16[1,6,4]
    offset = input i32[2,1,1]
    dweight = moe_matmul_bwd doutput token offset
    output dweight
    """

def conv_fprop(x: Tensor | float, w: Tensor | float, c: Tensor | float | None = None, *, stride: int | Sequence[int] = (), pad: int | Sequence[int] = (), post_pad: int | Sequence[int] = (), dilation: int | Sequence[int] = (), mode: Literal['cross_correlation', 'convolution'] = 'cross_correlation', alpha: float = 1, beta: float = 0, size: int | Sequence[int] = (), groups: int = 0, tf32: bool = False, fast_sums: bool = False) -> Tensor:
    """
    y[n, k, p] = alpha sum_{c, q} x[n, g(k) + c, p stride - pad + q dilation] w[k, c, q] + beta c[n, k, p]; g(k) is the first channel of k's group, terms outside x are left out; mode convolution reads w[k, c, taps - 1 - q]

    x [n, c, ..], w [k, c / groups, ..], c like y -> y [n, k, (size + pad + post_pad - (taps - 1) dilation - 1) / stride + 1 ..]; 1 to 3 spatial dimensions; any type, i8 accumulates in i32

    In the text form:

    x = input f32[1,4,6,6]
    w = input f32[2,4,3,3]
    y = conv_fprop x w pad=1,1 stride=2,2
    output y
    """

def conv_dgrad(dy: Tensor | float, w: Tensor | float, c: Tensor | float | None = None, *, stride: int | Sequence[int] = (), pad: int | Sequence[int] = (), post_pad: int | Sequence[int] = (), dilation: int | Sequence[int] = (), mode: Literal['cross_correlation', 'convolution'] = 'cross_correlation', alpha: float = 1, beta: float = 0, size: int | Sequence[int] = (), groups: int = 0, tf32: bool = False, fast_sums: bool = False) -> Tensor:
    """
    dx[n, g(k) + c, p stride - pad + q dilation] = alpha sum_{k, p, q} dy[n, k, p] w[k, c, q] + beta c; the gradient of conv_fprop with the same options

    dy [n, k, ..], w [k, c / groups, ..], c like dx -> dx [n, c, ..]; spatial size by the declared output, option size, or the smallest possible; option groups tells the channels (1 unless declared); any type

    In the text form:

    dy = input f32[1,2,3,3]
    w = input f32[2,4,3,3]
    dx = conv_dgrad dy w pad=1,1 stride=2,2 size=6,6
    output dx
    """

def conv_wgrad(dy: Tensor | float, x: Tensor | float, c: Tensor | float | None = None, *, stride: int | Sequence[int] = (), pad: int | Sequence[int] = (), post_pad: int | Sequence[int] = (), dilation: int | Sequence[int] = (), mode: Literal['cross_correlation', 'convolution'] = 'cross_correlation', alpha: float = 1, beta: float = 0, size: int | Sequence[int] = (), groups: int = 0, tf32: bool = False, fast_sums: bool = False) -> Tensor:
    """
    dw[k, c, q] = alpha sum_{n, p} dy[n, k, p] x[n, g(k) + c, p stride - pad + q dilation] + beta c[k, c, q]; the gradient of conv_fprop with the same options

    dy [n, k, ..], x [n, c, ..], c like dw -> dw [k, c / groups, ..]; the filter's spatial size and the groups come from options size and groups or from the declared output; any type

    In the text form:

    dy = input f32[1,2,3,3]
    x = input f32[1,4,6,6]
    dw = conv_wgrad dy x pad=1,1 stride=2,2 size=3,3
    output dw
    """

def causal_conv1d(x: Tensor | float, weight: Tensor | float, bias: Tensor | float | None = None, *, activation: Literal['none', 'silu'] = 'none', reversed: bool = False) -> Tensor:
    """
    y[b, d, t] = act(bias[d] + sum_{j < k} x[b, d, t - j] weight[d, k - 1 - j]), x is 0 before t = 0; reversed uses weight[d, j]; act is the identity or silu(z) = z / (1 + exp(-z))

    x [b, d, l], weight [d, k], bias [d] -> y [b, d, l]; k may exceed l; real types

    In the text form:

    x = input f32[1,2,8]
    weight = input f32[2,4]
    bias = input f32[2]
    y = causal_conv1d x weight bias activation=silu
    output y
    """

def causal_conv1d_bwd(x: Tensor | float, weight: Tensor | float, dy: Tensor | float, bias: Tensor | float | None = None, *, activation: Literal['none', 'silu'] = 'none', reversed: bool = False, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    dz = dy act'(z); dx[t] = sum_j dz[t + j] weight[k - 1 - j]; dweight[k - 1 - j] = sum_{b, t} dz[t] x[t - j]; dbias = sum_{b, t} dz; reversed uses weight[j]

    x, dy [b, d, l], weight [d, k], bias [d] -> dx [b, d, l], dweight [d, k], dbias [d]; real types

    Outputs: dx dweight dbias (when wanted)

    In the text form:

    x = input f32[1,2,8]
    weight = input f32[2,4]
    dy = input f32[1,2,8]
    dx, dw = causal_conv1d_bwd x weight dy
    output dx
    output dw
    """

def b2b_causal_conv1d(x: Tensor | float, w_proj: Tensor | float, w_mixer: Tensor | float, skip_bias: Tensor | float, *, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    p_c[t] = sum_j x[c, t - j] w_proj[c, kp - 1 - j] for c = 0, 1, 2; g = p_1 p_2; y[t] = sum_j g[t - j] w_mixer[km - 1 - j] + skip_bias g[t]; y_gated = y p_0; for every batch and channel

    x [b, d, 3, l], w_proj [d, 3, kp], w_mixer [d, km], skip_bias [d] -> y, y_gated [b, d, l]; real types

    Outputs: y y_gated

    In the text form:

    x = input f32[1,2,3,6]
    wp = input f32[2,3,2]
    wm = input f32[2,4]
    skip = input f32[2]
    y, gated = b2b_causal_conv1d x wp wm skip
    output y
    output gated
    """

def b2b_causal_conv1d_bwd(x: Tensor | float, w_proj: Tensor | float, w_mixer: Tensor | float, skip_bias: Tensor | float, y: Tensor | float, dy: Tensor | float, *, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    dy is the gradient of y_gated; dp_0 = dy y; e = dy p_0; dg[t] = sum_j e[t + j] w_mixer[km - 1 - j] + skip_bias e[t]; dp_1 = dg p_2; dp_2 = dg p_1; dw_mixer[km - 1 - j] = sum e[t] g[t - j]; dskip_bias = sum e g; dx[c, t] = sum_j dp_c[t + j] w_proj[c, kp - 1 - j]; dw_proj[c, kp - 1 - j] = sum dp_c[t] x[c, t - j]

    x [b, d, 3, l], w_proj [d, 3, kp], w_mixer [d, km], skip_bias [d], y and dy [b, d, l] -> gradients of the sizes of x, w_proj, w_mixer, skip_bias; real types

    Outputs: dx dw_proj dw_mixer dskip_bias

    In the text form:

    x = input f32[1,2,3,6]
    wp = input f32[2,3,2]
    wm = input f32[2,4]
    skip = input f32[2]
    y = input f32[1,2,6]
    dy = input f32[1,2,6]
    dx, dwp, dwm, dskip = b2b_causal_conv1d_bwd x wp wm skip y dy
    output dx
    output dwp
    output dwm
    output dskip
    """

def layer_norm(x: Tensor | float, scale: Tensor | float | None = None, bias: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, variance: Tensor | float | None = None, running_mean: Tensor | float | None = None, running_var: Tensor | float | None = None, epsilon: Tensor | float | None = None, momentum: Tensor | float = 0.1, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
    """
    y = scale (x - mean) inv_variance + bias, inv_variance = 1 / sqrt(E[(x - mean)^2] + eps); rms: mean = 0; zero_centered: 1 + scale instead of scale; new_running = (1 - momentum) running + momentum new, with the unbiased variance (of one element: 0)

    x [n,c,..] -> y like x; floating-point types. Statistics: layer, rms [x's sizes, 1 in normalised axes], ada_layer the same, instance [n,c,1,..], group [n,groups,1,..], batch [1,c,1,..] or the sizes of scale; f32, f64 for f64. scale, bias: layer, rms 1 outside the normalised axes, ada_layer [n,..] with 1 outside them, others [1,c,1,..], batch also [1,c,h,w]; epsilon, momentum: one value, in place of the options

    Outputs: y mean (when wanted) inv_variance (when wanted) new_running_mean (when wanted) new_running_var (when wanted)

    In the text form:

    x = input bf16[4,8]
    scale = input f32[1,8]
    bias = input f32[1,8]
    y, mean, inv_variance = layer_norm x scale bias eps=1e-6
    output y bf16
    output mean
    output inv_variance
    """

def instance_norm(x: Tensor | float, scale: Tensor | float | None = None, bias: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, variance: Tensor | float | None = None, running_mean: Tensor | float | None = None, running_var: Tensor | float | None = None, epsilon: Tensor | float | None = None, momentum: Tensor | float = 0.1, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
    """
    y = scale (x - mean) inv_variance + bias, inv_variance = 1 / sqrt(E[(x - mean)^2] + eps); rms: mean = 0; zero_centered: 1 + scale instead of scale; new_running = (1 - momentum) running + momentum new, with the unbiased variance (of one element: 0)

    x [n,c,..] -> y like x; floating-point types. Statistics: layer, rms [x's sizes, 1 in normalised axes], ada_layer the same, instance [n,c,1,..], group [n,groups,1,..], batch [1,c,1,..] or the sizes of scale; f32, f64 for f64. scale, bias: layer, rms 1 outside the normalised axes, ada_layer [n,..] with 1 outside them, others [1,c,1,..], batch also [1,c,h,w]; epsilon, momentum: one value, in place of the options

    Outputs: y mean (when wanted) inv_variance (when wanted) new_running_mean (when wanted) new_running_var (when wanted)

    In the text form:

    x = input bf16[4,8]
    scale = input f32[1,8]
    bias = input f32[1,8]
    y, mean, inv_variance = layer_norm x scale bias eps=1e-6
    output y bf16
    output mean
    output inv_variance
    """

def batch_norm(x: Tensor | float, scale: Tensor | float | None = None, bias: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, variance: Tensor | float | None = None, running_mean: Tensor | float | None = None, running_var: Tensor | float | None = None, epsilon: Tensor | float | None = None, momentum: Tensor | float = 0.1, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
    """
    y = scale (x - mean) inv_variance + bias, inv_variance = 1 / sqrt(E[(x - mean)^2] + eps); rms: mean = 0; zero_centered: 1 + scale instead of scale; new_running = (1 - momentum) running + momentum new, with the unbiased variance (of one element: 0)

    x [n,c,..] -> y like x; floating-point types. Statistics: layer, rms [x's sizes, 1 in normalised axes], ada_layer the same, instance [n,c,1,..], group [n,groups,1,..], batch [1,c,1,..] or the sizes of scale; f32, f64 for f64. scale, bias: layer, rms 1 outside the normalised axes, ada_layer [n,..] with 1 outside them, others [1,c,1,..], batch also [1,c,h,w]; epsilon, momentum: one value, in place of the options

    Outputs: y mean (when wanted) inv_variance (when wanted) new_running_mean (when wanted) new_running_var (when wanted)

    In the text form:

    x = input bf16[4,8]
    scale = input f32[1,8]
    bias = input f32[1,8]
    y, mean, inv_variance = layer_norm x scale bias eps=1e-6
    output y bf16
    output mean
    output inv_variance
    """

def group_norm(x: Tensor | float, scale: Tensor | float | None = None, bias: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, variance: Tensor | float | None = None, running_mean: Tensor | float | None = None, running_var: Tensor | float | None = None, epsilon: Tensor | float | None = None, momentum: Tensor | float = 0.1, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
    """
    y = scale (x - mean) inv_variance + bias, inv_variance = 1 / sqrt(E[(x - mean)^2] + eps); rms: mean = 0; zero_centered: 1 + scale instead of scale; new_running = (1 - momentum) running + momentum new, with the unbiased variance (of one element: 0)

    x [n,c,..] -> y like x; floating-point types. Statistics: layer, rms [x's sizes, 1 in normalised axes], ada_layer the same, instance [n,c,1,..], group [n,groups,1,..], batch [1,c,1,..] or the sizes of scale; f32, f64 for f64. scale, bias: layer, rms 1 outside the normalised axes, ada_layer [n,..] with 1 outside them, others [1,c,1,..], batch also [1,c,h,w]; epsilon, momentum: one value, in place of the options

    Outputs: y mean (when wanted) inv_variance (when wanted) new_running_mean (when wanted) new_running_var (when wanted)

    In the text form:

    x = input bf16[4,8]
    scale = input f32[1,8]
    bias = input f32[1,8]
    y, mean, inv_variance = layer_norm x scale bias eps=1e-6
    output y bf16
    output mean
    output inv_variance
    """

def rms_norm(x: Tensor | float, scale: Tensor | float | None = None, bias: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, variance: Tensor | float | None = None, running_mean: Tensor | float | None = None, running_var: Tensor | float | None = None, epsilon: Tensor | float | None = None, momentum: Tensor | float = 0.1, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
    """
    y = scale (x - mean) inv_variance + bias, inv_variance = 1 / sqrt(E[(x - mean)^2] + eps); rms: mean = 0; zero_centered: 1 + scale instead of scale; new_running = (1 - momentum) running + momentum new, with the unbiased variance (of one element: 0)

    x [n,c,..] -> y like x; floating-point types. Statistics: layer, rms [x's sizes, 1 in normalised axes], ada_layer the same, instance [n,c,1,..], group [n,groups,1,..], batch [1,c,1,..] or the sizes of scale; f32, f64 for f64. scale, bias: layer, rms 1 outside the normalised axes, ada_layer [n,..] with 1 outside them, others [1,c,1,..], batch also [1,c,h,w]; epsilon, momentum: one value, in place of the options

    Outputs: y mean (when wanted) inv_variance (when wanted) new_running_mean (when wanted) new_running_var (when wanted)

    In the text form:

    x = input bf16[4,8]
    scale = input f32[1,8]
    bias = input f32[1,8]
    y, mean, inv_variance = layer_norm x scale bias eps=1e-6
    output y bf16
    output mean
    output inv_variance
    """

def ada_layer_norm(x: Tensor | float, scale: Tensor | float | None = None, bias: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, variance: Tensor | float | None = None, running_mean: Tensor | float | None = None, running_var: Tensor | float | None = None, epsilon: Tensor | float | None = None, momentum: Tensor | float = 0.1, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
    """
    y = scale (x - mean) inv_variance + bias, inv_variance = 1 / sqrt(E[(x - mean)^2] + eps); rms: mean = 0; zero_centered: 1 + scale instead of scale; new_running = (1 - momentum) running + momentum new, with the unbiased variance (of one element: 0)

    x [n,c,..] -> y like x; floating-point types. Statistics: layer, rms [x's sizes, 1 in normalised axes], ada_layer the same, instance [n,c,1,..], group [n,groups,1,..], batch [1,c,1,..] or the sizes of scale; f32, f64 for f64. scale, bias: layer, rms 1 outside the normalised axes, ada_layer [n,..] with 1 outside them, others [1,c,1,..], batch also [1,c,h,w]; epsilon, momentum: one value, in place of the options

    Outputs: y mean (when wanted) inv_variance (when wanted) new_running_mean (when wanted) new_running_var (when wanted)

    In the text form:

    x = input bf16[4,8]
    scale = input f32[1,8]
    bias = input f32[1,8]
    y, mean, inv_variance = layer_norm x scale bias eps=1e-6
    output y bf16
    output mean
    output inv_variance
    """

def layer_norm_bwd(x: Tensor | float, dy: Tensor | float, scale: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, epsilon: Tensor | float | None = None, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
    """
    with z = (x - mean) inv_variance, g = scale dy and E the mean over elements that share statistics: dx = inv_variance (g - E[g] - z E[g z]) (rms: without E[g]; batch phase=inference: inv_variance g); dscale = sum dy z, dbias = sum dy over elements that share a scale

    x, dy of the same sizes -> dx like x; scale, mean, inv_variance as for the forward norm; dscale, dbias like scale, f32 (f64 for f64)

    Outputs: dx dscale (when wanted) dbias (when wanted)

    In the text form:

    x = input f32[4,8]
    dy = input f32[4,8]
    scale = input f32[1,8]
    dx, dscale, dbias = layer_norm_bwd x dy scale
    output dx
    output dscale
    output dbias
    """

def instance_norm_bwd(x: Tensor | float, dy: Tensor | float, scale: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, epsilon: Tensor | float | None = None, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
    """
    with z = (x - mean) inv_variance, g = scale dy and E the mean over elements that share statistics: dx = inv_variance (g - E[g] - z E[g z]) (rms: without E[g]; batch phase=inference: inv_variance g); dscale = sum dy z, dbias = sum dy over elements that share a scale

    x, dy of the same sizes -> dx like x; scale, mean, inv_variance as for the forward norm; dscale, dbias like scale, f32 (f64 for f64)

    Outputs: dx dscale (when wanted) dbias (when wanted)

    In the text form:

    x = input f32[4,8]
    dy = input f32[4,8]
    scale = input f32[1,8]
    dx, dscale, dbias = layer_norm_bwd x dy scale
    output dx
    output dscale
    output dbias
    """

def batch_norm_bwd(x: Tensor | float, dy: Tensor | float, scale: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, epsilon: Tensor | float | None = None, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
    """
    with z = (x - mean) inv_variance, g = scale dy and E the mean over elements that share statistics: dx = inv_variance (g - E[g] - z E[g z]) (rms: without E[g]; batch phase=inference: inv_variance g); dscale = sum dy z, dbias = sum dy over elements that share a scale

    x, dy of the same sizes -> dx like x; scale, mean, inv_variance as for the forward norm; dscale, dbias like scale, f32 (f64 for f64)

    Outputs: dx dscale (when wanted) dbias (when wanted)

    In the text form:

    x = input f32[4,8]
    dy = input f32[4,8]
    scale = input f32[1,8]
    dx, dscale, dbias = layer_norm_bwd x dy scale
    output dx
    output dscale
    output dbias
    """

def group_norm_bwd(x: Tensor | float, dy: Tensor | float, scale: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, epsilon: Tensor | float | None = None, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
    """
    with z = (x - mean) inv_variance, g = scale dy and E the mean over elements that share statistics: dx = inv_variance (g - E[g] - z E[g z]) (rms: without E[g]; batch phase=inference: inv_variance g); dscale = sum dy z, dbias = sum dy over elements that share a scale

    x, dy of the same sizes -> dx like x; scale, mean, inv_variance as for the forward norm; dscale, dbias like scale, f32 (f64 for f64)

    Outputs: dx dscale (when wanted) dbias (when wanted)

    In the text form:

    x = input f32[4,8]
    dy = input f32[4,8]
    scale = input f32[1,8]
    dx, dscale, dbias = layer_norm_bwd x dy scale
    output dx
    output dscale
    output dbias
    """

def rms_norm_bwd(x: Tensor | float, dy: Tensor | float, scale: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, epsilon: Tensor | float | None = None, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
    """
    with z = (x - mean) inv_variance, g = scale dy and E the mean over elements that share statistics: dx = inv_variance (g - E[g] - z E[g z]) (rms: without E[g]; batch phase=inference: inv_variance g); dscale = sum dy z, dbias = sum dy over elements that share a scale

    x, dy of the same sizes -> dx like x; scale, mean, inv_variance as for the forward norm; dscale, dbias like scale, f32 (f64 for f64)

    Outputs: dx dscale (when wanted) dbias (when wanted)

    In the text form:

    x = input f32[4,8]
    dy = input f32[4,8]
    scale = input f32[1,8]
    dx, dscale, dbias = layer_norm_bwd x dy scale
    output dx
    output dscale
    output dbias
    """

def ada_layer_norm_bwd(x: Tensor | float, dy: Tensor | float, scale: Tensor | float | None = None, mean: Tensor | float | None = None, inv_variance: Tensor | float | None = None, epsilon: Tensor | float | None = None, *, phase: Literal['training', 'inference'] = 'training', eps: float = 1e-05, groups: int = 1, zero_centered: bool = False, axes: int | Sequence[int] = (), wanted: str | Sequence[str] = ()) -> Outputs:
    """
    with z = (x - mean) inv_variance, g = scale dy and E the mean over elements that share statistics: dx = inv_variance (g - E[g] - z E[g z]) (rms: without E[g]; batch phase=inference: inv_variance g); dscale = sum dy z, dbias = sum dy over elements that share a scale

    x, dy of the same sizes -> dx like x; scale, mean, inv_variance as for the forward norm; dscale, dbias like scale, f32 (f64 for f64)

    Outputs: dx dscale (when wanted) dbias (when wanted)

    In the text form:

    x = input f32[4,8]
    dy = input f32[4,8]
    scale = input f32[1,8]
    dx, dscale, dbias = layer_norm_bwd x dy scale
    output dx
    output dscale
    output dbias
    """

def gen_stats(x: Tensor | float, *, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    sum[c] = sum of x over all dimensions but 1, sq_sum[c] = sum of x^2

    x [n,c,..] -> sum, sq_sum [1,c,1,..]; floating-point types, sums f32 (f64 for f64)

    Outputs: sum sq_sum

    In the text form:

    x = input f16[2,8,4,4]
    sum, sq_sum = gen_stats x
    output sum
    output sq_sum
    """

def bn_finalize(sum: Tensor | float | None = None, sq_sum: Tensor | float | None = None, scale: Tensor | float | None = None, bias: Tensor | float | None = None, running_mean: Tensor | float | None = None, running_var: Tensor | float | None = None, epsilon: Tensor | float | None = None, momentum: Tensor | float = 0.1, accum_count: Tensor | float | None = None, *, eps: float = 1e-05, count: int = 0, phase: Literal['training', 'inference'] = 'training', wanted: str | Sequence[str] = ()) -> Outputs:
    """
    mean = sum / count, var = max(sq_sum / count - mean^2, 0), inv_std = 1 / sqrt(var + eps), eq_scale = scale inv_std, eq_bias = bias - mean eq_scale; new_running = (1 - momentum) running + momentum new, with the unbiased variance; phase=inference: mean and var are running_mean and running_var

    all inputs of the sizes of scale, usually [1,c,1,..], or one value (epsilon, momentum, accum_count) -> all outputs of the sizes of scale; f32 (f64 for f64), accum_count i32 or i64

    Outputs: eq_scale eq_bias mean (when wanted) inv_std (when wanted) new_running_mean (when wanted) new_running_var (when wanted)

    In the text form:

    x = input f32[2,8,4,4]
    scale = input f32[1,8,1,1]
    bias = input f32[1,8,1,1]
    sum, sq_sum = gen_stats x
    eq_scale, eq_bias = bn_finalize sum sq_sum scale bias count=32
    y = relu (add (mul x eq_scale) eq_bias)
    output y
    """

def bn_bwd_weights(dy: Tensor | float, x: Tensor | float, mean: Tensor | float, inv_std: Tensor | float, scale: Tensor | float, *, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    dscale = sum dy (x - mean) inv_std, dbias = sum dy; with N elements for each channel eq_dy_scale = scale inv_std, eq_x_scale = -eq_dy_scale inv_std dscale / N, eq_bias = -eq_dy_scale dbias / N - eq_x_scale mean, so that dx = eq_dy_scale dy + eq_x_scale x + eq_bias

    dy, x [n,c,..], mean, inv_std, scale [1,c,1,..] -> five tensors [1,c,1,..]; floating-point types, results f32 (f64 for f64)

    Outputs: dscale dbias eq_dy_scale eq_x_scale eq_bias

    In the text form:

    dy = input f32[2,8,4,4]
    x = input f32[2,8,4,4]
    mean = input f32[1,8,1,1]
    inv_std = input f32[1,8,1,1]
    scale = input f32[1,8,1,1]
    dscale, dbias, a, b, d = bn_bwd_weights dy x mean inv_std scale
    dx = add (add (mul dy a) (mul x b)) d
    output dx
    output dscale
    output dbias
    """

def lrn(x: Tensor | float, *, n: int = 5, alpha: float = 1e-04, beta: float = 0.75, k: float = 2) -> Tensor:
    """
    y[c] = x[c] / (k + alpha / n sum x[i]^2)^beta over the channels i = c - floor((n - 1) / 2) .. c + ceil((n - 1) / 2)

    x [n, c, ..] with 0 to 3 more dimensions -> y like x; real types

    In the text form:

    x = input f32[1,6,2,2]
    y = lrn x n=3 alpha=0.1
    output y
    """

def lrn_bwd(x: Tensor | float, dy: Tensor | float, y: Tensor | float | None = None, *, n: int = 5, alpha: float = 1e-04, beta: float = 0.75, k: float = 2) -> Tensor:
    """
    with s = k + alpha / n sum x^2 of lrn: dx[c] = dy[c] s[c]^-beta - 2 alpha beta / n x[c] sum dy[i] x[i] s[i]^(-beta - 1) over the channels i whose window holds c; y is not needed and ignored

    x, dy, y [n, c, ..] -> dx like x; real types

    In the text form:

    x = input f32[1,6,2,2]
    dy = input f32[1,6,2,2]
    dx = lrn_bwd x dy n=3 alpha=0.1
    output dx
    """

def divisive_norm(x: Tensor | float, mean: Tensor | float | None = None, *, n: int = 5, alpha: float = 1e-04, beta: float = 0.75, k: float = 2) -> Tensor:
    """
    v = x - mean (0 unless given); y[p] = v[p] / (k + alpha / n^d sum v[q]^2)^beta over the d-dimensional window of the same plane with |q - p| <= floor((n - 1) / 2) in each spatial dimension

    x [n, c, ..] with d = 1 to 3 spatial dimensions, mean like x -> y like x; real types

    In the text form:

    x = input f32[1,2,5,5]
    mean = input f32[1,2,5,5]
    y = divisive_norm x mean n=3
    output y
    """

def divisive_norm_bwd(x: Tensor | float, dy: Tensor | float, mean: Tensor | float | None = None, *, n: int = 5, alpha: float = 1e-04, beta: float = 0.75, k: float = 2, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    with v and s = k + alpha / n^d sum v^2 of divisive_norm: dx[p] = dy[p] s[p]^-beta - 2 alpha beta / n^d v[p] sum dy[q] v[q] s[q]^(-beta - 1) over the same window; dmean = -dx

    x, dy, mean [n, c, ..] with 1 to 3 spatial dimensions -> dx, dmean like x; real types

    Outputs: dx dmean (when wanted)

    In the text form:

    x = input f32[1,2,5,5]
    dy = input f32[1,2,5,5]
    dx = divisive_norm_bwd x dy n=3
    output dx
    """

def softmax(x: Tensor | float, sink: Tensor | float | None = None, *, axes: int | Sequence[int] = (-1,), stats_log2: bool = False, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    m = max(max x, sink), l = sum exp(x - m) + exp(sink - m); softmax: y = exp(x - m) / l; log_softmax: y = x - m - ln l; max = m, sum_exp = l, stats = m + ln l (times log2 e with stats_log2); where all is -inf: y = 0 (log: -inf), sum_exp = 0, stats = -inf

    x of any rank, sink broadcast to x with `axes` of size 1 -> y as x; stats, max, sum_exp with `axes` of size 1; real types

    Outputs: y stats (when wanted) max (when wanted) sum_exp (when wanted)

    In the text form:

    x = input f32[2,3,5]
    y, stats:s = softmax x axes=-1
    output y
    output s
    """

def log_softmax(x: Tensor | float, sink: Tensor | float | None = None, *, axes: int | Sequence[int] = (-1,), stats_log2: bool = False, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    m = max(max x, sink), l = sum exp(x - m) + exp(sink - m); softmax: y = exp(x - m) / l; log_softmax: y = x - m - ln l; max = m, sum_exp = l, stats = m + ln l (times log2 e with stats_log2); where all is -inf: y = 0 (log: -inf), sum_exp = 0, stats = -inf

    x of any rank, sink broadcast to x with `axes` of size 1 -> y as x; stats, max, sum_exp with `axes` of size 1; real types

    Outputs: y stats (when wanted) max (when wanted) sum_exp (when wanted)

    In the text form:

    x = input f32[2,3,5]
    y, stats:s = softmax x axes=-1
    output y
    output s
    """

def softmax_bwd(y: Tensor | float, dy: Tensor | float, *, axes: int | Sequence[int] = (-1,)) -> Tensor:
    """
    softmax_bwd: dx = y (dy - sum y dy); log_softmax_bwd: dx = dy - exp(y) sum dy; sums over `axes`

    y (the result of the forward operation) and dy of equal sizes -> dx; real types

    In the text form:

    y = input f32[2,3,5]
    dy = input f32[2,3,5]
    dx = softmax_bwd y dy axes=-1
    output dx
    """

def log_softmax_bwd(y: Tensor | float, dy: Tensor | float, *, axes: int | Sequence[int] = (-1,)) -> Tensor:
    """
    softmax_bwd: dx = y (dy - sum y dy); log_softmax_bwd: dx = dy - exp(y) sum dy; sums over `axes`

    y (the result of the forward operation) and dy of equal sizes -> dx; real types

    In the text form:

    y = input f32[2,3,5]
    dy = input f32[2,3,5]
    dx = softmax_bwd y dy axes=-1
    output dx
    """

def cross_entropy(logits: Tensor | float, target: Tensor | float, *, axis: int = -1, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    stats = ln sum exp(logits) along the axis, loss = stats - logits[target]; loss = 0 for rows whose target is not in 0..classes - 1, which so are left out

    logits of any rank, target (i32 or i64) with size 1 along the axis, or without it -> loss and stats with size 1 along the axis; real types

    Outputs: loss stats (when wanted)

    In the text form:

    x = input f32[6,10]
    t = input i32[6]
    l = cross_entropy x t
    y = mean l
    output y
    """

def cross_entropy_bwd(logits: Tensor | float, target: Tensor | float, stats: Tensor | float, dloss: Tensor | float, *, axis: int = -1) -> Tensor:
    """
    dlogits = dloss exp(logits - stats), and dloss less at the target; 0 for rows whose target is not in 0..classes - 1

    logits of any rank; target (i32 or i64), stats and dloss with size 1 along the axis -> dlogits like logits; real types

    In the text form:

    x = input f32[6,10]
    t = input i32[6,1]
    d = input f32[6,1]
    l, stats:s = cross_entropy x t
    dx = cross_entropy_bwd x t s d
    output dx
    """

def sdpa_fwd(q: Tensor | float, k: Tensor | float, v: Tensor | float, scale: Tensor | float = 1, bias: Tensor | float | None = None, seq_len_q: Tensor | float | None = None, seq_len_kv: Tensor | float | None = None, cu_seq_len_q: Tensor | float | None = None, cu_seq_len_kv: Tensor | float | None = None, page_table_k: Tensor | float | None = None, page_table_v: Tensor | float | None = None, block_mask: Tensor | float | None = None, sink: Tensor | float | None = None, dropout_seed: Tensor | float | None = None, dropout_offset: Tensor | float | None = None, dropout_mask: Tensor | float | None = None, dropout_scale: Tensor | float | None = None, alibi_slopes: Tensor | float | None = None, descale_q: Tensor | float | None = None, descale_k: Tensor | float | None = None, descale_v: Tensor | float | None = None, descale_s: Tensor | float | None = None, scale_s: Tensor | float | None = None, scale_o: Tensor | float | None = None, *, left: int | None = None, right: int | None = None, align: Literal['top_left', 'bottom_right'] = 'top_left', alibi: bool = False, dropout: float = 0, stats_log2: bool = False, score_mod: Callable[..., Tensor] | None = None, max_seq_kv: int = 0, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    s = mask(score_mod(scale q k^T) + bias + alibi); p = dropout(softmax([s, sink])); o = p v; stats = log sum exp s; what is masked contributes nothing, rows with nothing to attend to give o = 0. Beyond its length a sequence is not read, and o and sum_exp are 0, stats and max -inf there; packed results are not written there; rng_dump has a number for each score

    q [b,hq,sq,d], k [b,hk,skv,d], v [b,hv,skv,dv] -> o [b,hq,sq,dv], stats, max, sum_exp [b,hq,sq,1]; hq a multiple of hk and hv; f16, bf16, f32, f64, 8-bit floats with a sign; paged k, v [blocks,h,block_size,d] with page tables [b,1,pages,1]; bias broadcasts to [b,hq,sq,skv]; seq_len [b,1,1,1], cu_seq_len [b+1,1,1,1]; sink, alibi_slopes [1,hq,1,1]; block_mask [b,hq,sq/128,skv/128] or with more columns. Packed sequences may be longer than sq and skv say: their lengths and offsets decide, unless a bias, a mask or block scales end with the sizes; results that are not packed end with them too

    Outputs: o stats (when wanted) max (when wanted) sum_exp (when wanted) rng_dump (when wanted) amax_s (when wanted) amax_o (when wanted)

    In the text form:

    q = input bf16[2,4,8,16]
    k = input bf16[2,2,8,16]
    v = input bf16[2,2,8,16]
    o, stats = sdpa_fwd q k v scale=0.25 right=0
    output o
    output stats
    """

def sdpa_bwd(q: Tensor | float, k: Tensor | float, v: Tensor | float, o: Tensor | float, do: Tensor | float, stats: Tensor | float, scale: Tensor | float = 1, bias: Tensor | float | None = None, seq_len_q: Tensor | float | None = None, seq_len_kv: Tensor | float | None = None, cu_seq_len_q: Tensor | float | None = None, cu_seq_len_kv: Tensor | float | None = None, block_mask: Tensor | float | None = None, sink: Tensor | float | None = None, dropout_seed: Tensor | float | None = None, dropout_offset: Tensor | float | None = None, dropout_mask: Tensor | float | None = None, dropout_scale: Tensor | float | None = None, alibi_slopes: Tensor | float | None = None, descale_q: Tensor | float | None = None, descale_k: Tensor | float | None = None, descale_v: Tensor | float | None = None, descale_s: Tensor | float | None = None, scale_s: Tensor | float | None = None, descale_o: Tensor | float | None = None, descale_do: Tensor | float | None = None, descale_dp: Tensor | float | None = None, scale_dq: Tensor | float | None = None, scale_dk: Tensor | float | None = None, scale_dv: Tensor | float | None = None, scale_dp: Tensor | float | None = None, delta: Tensor | float | None = None, *, left: int | None = None, right: int | None = None, align: Literal['top_left', 'bottom_right'] = 'top_left', alibi: bool = False, dropout: float = 0, stats_log2: bool = False, score_mod: Callable[..., Tensor] | None = None, score_mod_bwd: Callable[..., Tensor] | None = None, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    p = exp(s - stats); dv = dropout(p)^T do; ds = p (dropout(do v^T) - rowsum(do o)); dbias = sum ds; dsink = -sum exp(sink - stats) rowsum(do o); ds = score_mod_bwd(ds); dq = scale ds k; dk = scale ds^T q. Beyond its length a sequence is not read, and every gradient is 0 there; packed ones are not written there

    inputs of sdpa_fwd (no pages), its o and stats, do like o -> dq, dk, dv, dbias, dsink with the sizes of q, k, v, bias, sink (dbias without a bias: as declared, for one that score_mod adds); delta [b,hq,sq,1] is (1 - dropout) rowsum(do o) where that is known already

    Outputs: dq dk dv dbias (when wanted) dsink (when wanted) amax_dq (when wanted) amax_dk (when wanted) amax_dv (when wanted) amax_dp (when wanted)

    In the text form:

    q = input f32[2,4,8,16]
    k = input f32[2,2,8,16]
    v = input f32[2,2,8,16]
    do = input f32[2,4,8,16]
    o, stats = sdpa_fwd q k v scale=0.25 right=0
    dq, dk, dv = sdpa_bwd q k v o do stats scale=0.25 right=0
    output dq
    output dk
    output dv
    """

def rope(x: Tensor | float, freqs: Tensor | float, *, scale: float = 1, rope_dim: int = 0) -> Tensor:
    """
    P = d - r, c_k = cos(freqs[s, k]), s_k = sin(freqs[s, k]), k < r/2: y[P+k] = scale (x[P+k] c_k - x[P+r/2+k] s_k), y[P+r/2+k] = scale (x[P+r/2+k] c_k + x[P+k] s_k), the first P elements are multiplied by scale

    x [b, h, s, d], freqs [1, 1, s, r] or [s, 1, 1, r] in radians (positions may be more, only r/2 columns are read) -> y as x; r = rope_dim or d, even; real types

    In the text form:

    x = input f32[2,3,5,8]
    freqs = input f32[1,1,5,4]
    y = rope x freqs rope_dim=4
    output y
    """

def rope_bwd(dy: Tensor | float, freqs: Tensor | float, *, scale: float = 1, rope_dim: int = 0) -> Tensor:
    """
    P = d - r, c_k = cos(freqs[s, k]), s_k = sin(freqs[s, k]), k < r/2: dx[P+k] = scale (dy[P+k] c_k + dy[P+r/2+k] s_k), dx[P+r/2+k] = scale (dy[P+r/2+k] c_k - dy[P+k] s_k), the first P elements are multiplied by scale

    dy [b, h, s, d], freqs [1, 1, s, r] or [s, 1, 1, r] in radians (positions may be more, only r/2 columns are read) -> dx as dy; r = rope_dim or d, even; real types

    In the text form:

    dy = input f32[2,3,5,8]
    freqs = input f32[1,1,5,4]
    dx = rope_bwd dy freqs rope_dim=4
    output dx
    """

def band_mask(x: Tensor | float, fill: Tensor | float, seq_len_q: Tensor | float | None = None, seq_len_kv: Tensor | float | None = None, cu_seq_len_q: Tensor | float | None = None, cu_seq_len_kv: Tensor | float | None = None, left: Tensor | float | None = None, shift_right: Tensor | float | None = None, *, compare: Literal['add', 'mul', 'min', 'max', 'sqrt', 'add_square', 'div', 'mod', 'pow', 'sub', 'abs', 'ceil', 'cos', 'exp', 'floor', 'log', 'neg', 'rsqrt', 'sin', 'tan', 'erf', 'identity', 'reciprocal', 'atan2', 'floor_mod', 'relu', 'tanh', 'sigmoid', 'elu', 'gelu', 'softplus', 'swish', 'gelu_tanh', 'relu_bwd', 'tanh_bwd', 'sigmoid_bwd', 'elu_bwd', 'gelu_bwd', 'softplus_bwd', 'swish_bwd', 'gelu_tanh_bwd', 'cmp_eq', 'cmp_neq', 'cmp_gt', 'cmp_ge', 'cmp_lt', 'cmp_le', 'logical_and', 'logical_or', 'logical_not', 'gen_index', 'select'] = 'cmp_ge') -> Tensor:
    """
    y = keep ? x : fill, row and col the indices of dimensions 2 and 3; without left: keep = compare(row + off + shift_right, col); with left: keep = compare(col + left - off, row); off = length of kv - length of q where lengths are given, otherwise 0

    x [b, h, sq, skv], fill, left, shift_right one value each, seq_len_* [b, 1, 1, 1] or one value, cu_seq_len_* [b + 1, 1, 1, 1] -> y as x

    In the text form:

    x = input f32[2,3,4,5]
    y = band_mask x -inf compare=cmp_ge
    output y
    """

def paged_load(container: Tensor | float, page_table: Tensor | float, seq_len: Tensor | float | None = None, *, size: int = 0, transposed: bool = False) -> Tensor:
    """
    y[b, h, s, :] = container[page_table[b, 0, s / block, 0], h, s % block, :] for s < seq_len[b], 0 beyond it and for pages outside the container; transposed: y[b, h, :, s]

    container [pages, h, block, d], page_table [b, 1, n, 1] i32 or i64, seq_len [b, 1, 1, 1] -> y [b, h, s, d] or, transposed, [b, h, d, s]; s = size, the declared one, or n block; any type

    In the text form:

    c = input f32[6,2,4,8]
    t = const i32[2,1,2,1] 5,0,3,2
    y = paged_load c t
    output y
    """

def resample(x: Tensor | float, *, mode: Literal['nearest', 'bilinear', 'avg_pool_include', 'avg_pool_exclude', 'max_pool'] = 'max_pool', window: int | Sequence[int | fractions.Fraction] = (), stride: int | Sequence[int | fractions.Fraction] = (), pad: int | Sequence[int | fractions.Fraction] = (), post_pad: int | Sequence[int | fractions.Fraction] = (), padding: Literal['automatic', 'zero', 'neg_inf', 'edge'] = 'automatic', size: int | Sequence[int] = (), alpha: float = 1, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    with s = o stride - pad in each dimension: nearest gives alpha x[floor(s + 1/2)]; bilinear mixes x[floor(s)] and x[floor(s) + 1] by the fraction of s; pooling gives alpha times the mean (over the whole window, or over its elements inside x: exclude) or the maximum of x[i] for s <= i < s + window; index is the place of the first maximum in the window, row-major; outside x there is 0, -infinity or the nearest element (padding); the mean of nothing is 0; a NaN is the maximum

    x [n, c, ..] -> y [n, c, 1 + floor((size + pad + post_pad - window) / stride) .., or as declared or by option size], index like y (i8, i32 or i64); 1 to 3 spatial dimensions; real and integer types

    Outputs: y index (when wanted)

    In the text form:

    x = input f32[1,2,6,6]
    y, index:i = resample x mode=max_pool window=3,3 stride=2,2 pad=1,1
    output y
    output i
    """

def max_pool(x: Tensor | float, *, mode: Literal['nearest', 'bilinear', 'avg_pool_include', 'avg_pool_exclude', 'max_pool'] = 'max_pool', window: int | Sequence[int | fractions.Fraction] = (), stride: int | Sequence[int | fractions.Fraction] = (), pad: int | Sequence[int | fractions.Fraction] = (), post_pad: int | Sequence[int | fractions.Fraction] = (), padding: Literal['automatic', 'zero', 'neg_inf', 'edge'] = 'automatic', size: int | Sequence[int] = (), alpha: float = 1, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    with s = o stride - pad in each dimension: nearest gives alpha x[floor(s + 1/2)]; bilinear mixes x[floor(s)] and x[floor(s) + 1] by the fraction of s; pooling gives alpha times the mean (over the whole window, or over its elements inside x: exclude) or the maximum of x[i] for s <= i < s + window; index is the place of the first maximum in the window, row-major; outside x there is 0, -infinity or the nearest element (padding); the mean of nothing is 0; a NaN is the maximum

    x [n, c, ..] -> y [n, c, 1 + floor((size + pad + post_pad - window) / stride) .., or as declared or by option size], index like y (i8, i32 or i64); 1 to 3 spatial dimensions; real and integer types

    Outputs: y index (when wanted)

    In the text form:

    x = input f32[1,2,6,6]
    y, index:i = resample x mode=max_pool window=3,3 stride=2,2 pad=1,1
    output y
    output i
    """

def avg_pool(x: Tensor | float, *, mode: Literal['nearest', 'bilinear', 'avg_pool_include', 'avg_pool_exclude', 'max_pool'] = 'avg_pool_include', window: int | Sequence[int | fractions.Fraction] = (), stride: int | Sequence[int | fractions.Fraction] = (), pad: int | Sequence[int | fractions.Fraction] = (), post_pad: int | Sequence[int | fractions.Fraction] = (), padding: Literal['automatic', 'zero', 'neg_inf', 'edge'] = 'automatic', size: int | Sequence[int] = (), alpha: float = 1, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    with s = o stride - pad in each dimension: nearest gives alpha x[floor(s + 1/2)]; bilinear mixes x[floor(s)] and x[floor(s) + 1] by the fraction of s; pooling gives alpha times the mean (over the whole window, or over its elements inside x: exclude) or the maximum of x[i] for s <= i < s + window; index is the place of the first maximum in the window, row-major; outside x there is 0, -infinity or the nearest element (padding); the mean of nothing is 0; a NaN is the maximum

    x [n, c, ..] -> y [n, c, 1 + floor((size + pad + post_pad - window) / stride) .., or as declared or by option size], index like y (i8, i32 or i64); 1 to 3 spatial dimensions; real and integer types

    Outputs: y index (when wanted)

    In the text form:

    x = input f32[1,2,6,6]
    y, index:i = resample x mode=max_pool window=3,3 stride=2,2 pad=1,1
    output y
    output i
    """

def resample_bwd(dy: Tensor | float, x: Tensor | float | None = None, y: Tensor | float | None = None, index: Tensor | float | None = None, *, mode: Literal['nearest', 'bilinear', 'avg_pool_include', 'avg_pool_exclude', 'max_pool'] = 'max_pool', window: int | Sequence[int | fractions.Fraction] = (), stride: int | Sequence[int | fractions.Fraction] = (), pad: int | Sequence[int | fractions.Fraction] = (), post_pad: int | Sequence[int | fractions.Fraction] = (), padding: Literal['automatic', 'zero', 'neg_inf', 'edge'] = 'automatic', size: int | Sequence[int] = (), alpha: float = 1) -> Tensor:
    """
    dx = alpha (d resample / d x)^T dy; max_pool sends dy to the element that index names, or to the first maximum of the window when only x is given; y is not needed and ignored

    dy [n, c, ..], x and y of the forward operation, index like dy (i8, i32 or i64) -> dx [n, c, ..] with the spatial size of x, of the declared output, of option size, or the smallest possible; real and integer types

    In the text form:

    x = input f32[1,2,6,6]
    dy = input f32[1,2,3,3]
    dx = resample_bwd dy x=x mode=max_pool window=3,3 stride=2,2 pad=1,1
    output dx
    """

def affine_grid(theta: Tensor | float, *, size: int | Sequence[int] = ()) -> Tensor:
    """
    grid[n, i, j] = theta[n] (u(j), u(i), 1)^T with u(j) = -1 + 2 j / (w - 1), 0 for a size of 1; in three dimensions theta[n] (u(k), u(j), u(i), 1)^T: the last dimension of the image comes first

    theta [n, 2, 3] or [n, 3, 4], option size [n, c, (d,) h, w] -> grid [n, (d,) h, w, 2 or 3]; real types

    In the text form:

    theta = input f32[1,2,3]
    grid = affine_grid theta size=1,1,4,5
    output grid
    """

def affine_grid_bwd(dgrid: Tensor | float) -> Tensor:
    """
    dtheta[n] = sum_{i, j} dgrid[n, i, j] (u(j), u(i), 1), u as in affine_grid

    dgrid [n, h, w, 2] -> dtheta [n, 2, 3], or [n, d, h, w, 3] -> [n, 3, 4]; real types

    In the text form:

    dgrid = input f32[1,4,5,2]
    dtheta = affine_grid_bwd dgrid
    output dtheta
    """

def grid_sample(x: Tensor | float, grid: Tensor | float) -> Tensor:
    """
    y[n, c, i, j] = x[n, c] at row (grid[n, i, j, 1] + 1) (h - 1) / 2 and column (grid[n, i, j, 0] + 1) (w - 1) / 2, interpolated linearly; x is 0 outside; places that are not finite give 0

    x [n, c, h, w], grid [n, oh, ow, 2] -> y [n, c, oh, ow]; also x [n, c, d, h, w] with grid [n, od, oh, ow, 3]; real types

    In the text form:

    x = input f32[1,2,4,5]
    grid = input f32[1,3,3,2]
    y = grid_sample x grid
    output y
    """

def grid_sample_bwd(x: Tensor | float, grid: Tensor | float, dy: Tensor | float, *, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    dx gathers dy with the weights of the interpolation; dgrid = sum_c dy (d y / d grid), with the slope of the cell that holds the place (the upper one at its border)

    x [n, c, h, w], grid [n, oh, ow, 2], dy [n, c, oh, ow] -> dx like x, dgrid like grid; also three dimensions; real types

    Outputs: dx dgrid

    In the text form:

    x = input f32[1,2,4,5]
    grid = input f32[1,3,3,2]
    dy = input f32[1,2,3,3]
    dx, dgrid = grid_sample_bwd x grid dy
    output dx
    output dgrid
    """

def rng(seed: Tensor | float = 0, offset: Tensor | float = 0, *, distribution: Literal['bernoulli', 'uniform', 'normal'] = 'bernoulli', p: float = 0.5, low: float = 0, high: float = 1, mean: float = 0, stddev: float = 1, size: int | Sequence[int] = ()) -> Tensor:
    """
    element i (row-major) has word w_i = word i%4 of Philox4x32-10 with key seed, subsequence i/4 and offset; u_i = (w_i >> 8) / 2^24; bernoulli: u_i < p; uniform: low + (high - low) u_i; normal: mean + stddev sqrt(-2 ln(1 - u_j)) {cos, sin}(2 pi u_j+1) for i = j, j+1 with j even

    seed, offset one i32 or i64 each (or options) -> y of `size` or its declared sizes, f32 unless declared

    In the text form:

    y = rng size=4,5 distribution=normal seed=7
    output y
    """

def dropout(x: Tensor | float, seed: Tensor | float = 0, offset: Tensor | float = 0, *, p: float = 0.5, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    mask_i = u_i < 1 - p with the u_i of rng for the same seed and offset, i row-major; y = mask ? x / (1 - p) : 0

    x of any sizes, seed and offset one i32 or i64 each (or options) -> y as x; mask of the same sizes, bool unless declared

    Outputs: y mask (when wanted)

    In the text form:

    x = input f32[4,5]
    y, mask:m = dropout x p=0.25 seed=7
    output y
    output m
    """

def dropout_bwd(dy: Tensor | float, mask: Tensor | float, *, p: float = 0.5) -> Tensor:
    """
    dx = mask ? dy / (1 - p) : 0

    dy and mask of equal sizes; any type of mask, non-zero keeps -> dx as dy

    In the text form:

    dy = input f32[4,5]
    m = input bool[4,5]
    dx = dropout_bwd dy m p=0.25
    output dx
    """

def reshape(x: Tensor | float, *, size: int | Sequence[int] = (), mode: Literal['view', 'logical'] = 'logical') -> Tensor:
    """
    logical: the i-th element of y in row-major order is the i-th of x in row-major order, whatever the strides; view: both in the order of their strides (so y may be a transposed view of x)

    x of any sizes -> y of `size` (one -1 is filled in) or of its declared sizes, equally many elements; any type

    In the text form:

    x = input f32[2,3,4]
    y = reshape x size=6,-1
    output y
    """

def transpose(x: Tensor | float, *, perm: int | Sequence[int] = ()) -> Tensor:
    """
    y[i_perm[0], i_perm[1], ..] = x[i_0, i_1, ..]

    x of any sizes -> y with size i = size perm[i] of x; any type

    In the text form:

    x = input f32[2,3,4]
    y = transpose x perm=0,2,1
    output y
    """

def slice(x: Tensor | float, *, start: int | Sequence[int] = (), limit: int | Sequence[int] = (), stride: int | Sequence[int] = ()) -> Tensor:
    """
    y[i_0, i_1, ..] = x[start_0 + stride_0 i_0, start_1 + stride_1 i_1, ..]

    x of any sizes -> y with size ceil((limit - start) / stride) in each dimension; start defaults to 0, limit to the size, stride to 1; any type

    In the text form:

    x = input f32[2,5,4]
    y = slice x start=0,1,0 limit=2,5,4 stride=1,2,1
    output y
    """

def concat(x: Sequence[Tensor], *, axis: int = 0, inplace_index: int | None = None) -> Tensor:
    """
    y = x_0, x_1, .. one after the other along `axis`; inplace_index tells which input may already lie in the memory of y and does not change the result

    x_i with equal sizes except in `axis`, of one type -> y with the sum of their sizes in `axis`; any type

    In the text form:

    a = input f32[2,3]
    b = input f32[2,1]
    y = concat a b axis=1
    output y
    """

def gather(x: Tensor | float, index: Tensor | float, *, axis: int = 0, mode: Literal['rows', 'elements'] = 'rows') -> Tensor:
    """
    rows: y[a.., i.., b..] = x[a.., index[i..], b..], where the axis of x lies between a.. and b..; elements: y[a.., i, b..] = x[a.., index[a.., i, b..], b..]; 0 where the index is not in 0..size - 1 of the axis

    rows: x [a.., n, b..], index [i..] -> y [a.., i.., b..]; elements: index like x but along the axis -> y like index; index i32 or i64, x of any type. An embedding: x the table, index the words

    In the text form:

    table = input f32[50,8]
    words = input i32[2,6]
    y = embedding table words
    output y
    """

def embedding(x: Tensor | float, index: Tensor | float, *, axis: int = 0, mode: Literal['rows', 'elements'] = 'rows') -> Tensor:
    """
    rows: y[a.., i.., b..] = x[a.., index[i..], b..], where the axis of x lies between a.. and b..; elements: y[a.., i, b..] = x[a.., index[a.., i, b..], b..]; 0 where the index is not in 0..size - 1 of the axis

    rows: x [a.., n, b..], index [i..] -> y [a.., i.., b..]; elements: index like x but along the axis -> y like index; index i32 or i64, x of any type. An embedding: x the table, index the words

    In the text form:

    table = input f32[50,8]
    words = input i32[2,6]
    y = embedding table words
    output y
    """

def scatter_add(updates: Tensor | float, index: Tensor | float, x: Tensor | float | None = None, *, axis: int = 0, mode: Literal['rows', 'elements'] = 'rows', size: int = 0) -> Tensor:
    """
    y = x (0 without it), then rows: y[a.., index[i..], b..] += updates[a.., i.., b..]; elements: y[a.., index[a.., i, b..], b..] += updates[a.., i, b..]; updates whose index is not in 0..size - 1 of the axis are left out

    rows: updates [a.., i.., b..], index [i..] -> y [a.., n, b..]; elements: updates and index of equal sizes, y like them but n along the axis; n is option size, that of x or of the declared result; index i32 or i64, updates and x real or integers

    In the text form:

    u = input f32[6,8]
    rows = input i32[6]
    y = scatter_add u rows size=4
    output y
    """

def block_scale_quantize(x: Tensor | float, *, block: int | Sequence[int] = (32,), axis: int = -1, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    scale = max |x| over the block / largest value of y's type (448, 57344, 6), rounded to the type of scale: e8m0 rounds up, 2^ceil(log2(..)), so that nothing overflows (OCP MX rounds down), the others to nearest; y = round(x / scale), saturated, 0 where scale is 0

    x of any sizes -> y as x (e4m3 unless declared another float of 8 or 4 bits with a sign), scale with size ceil(n / block) in `axis` (e8m0, or e4m3 for e2m1 in blocks of 16); declared sizes of scale may move the axis; reorder=f8_128x4 is honoured

    Outputs: y scale

    In the text form:

    x = input f32[4,64]
    y, scale = block_scale_quantize x block=32
    output y
    output scale
    """

def block_scale_dequantize(x: Tensor | float, scale: Tensor | float, *, block: int | Sequence[int] = (32,), neg_scale: bool = False) -> Tensor:
    """
    y[i_0, i_1, ..] = x[i_0, i_1, ..] scale[i_0 / b_0, i_1 / b_1, ..], with neg_scale times -1; `block` gives the last of the b_k, the others are 1

    x of any sizes, scale with size ceil(n_k / b_k) in each dimension -> y as x; where the sizes of scale contradict `block`, its one length other than 1 is moved to the dimension that fits; reorder=f8_128x4 is honoured; real numbers and integers

    In the text form:

    x = input e4m3[4,64]
    s = input e8m0[4,2]
    y = block_scale_dequantize x s block=32
    output y bf16
    """

def rnn_fwd(x: Tensor | float, weight: Tensor | float, h0: Tensor | float | None = None, c0: Tensor | float | None = None, seq_lengths: Tensor | float | None = None, *, mode: Literal['relu', 'tanh', 'lstm', 'gru'] = 'lstm', hidden: int = 0, proj: int = 0, layers: int = 1, bidirectional: bool = False, input: Literal['linear', 'skip'] = 'linear', bias: Literal['none', 'input', 'recurrent', 'both'] = 'both', layout: Literal['seq_major', 'batch_major'] = 'seq_major', packed: bool = False, clip_min: float | None = None, clip_max: float | None = None, clip_nan: bool = False, dropout: float = 0, seed: int = 0, phase: Literal['training', 'inference'] = 'training', wanted: str | Sequence[str] = ()) -> Outputs:
    """
    with a_g = W_g x_t + bW_g and b_g = R_g h + bR_g: relu, tanh h' = f(a + b); lstm i, f, o = sigmoid(a + b), g = tanh(a_g + b_g), c' = clip(f c + i g), h' = P (o tanh(c')); gru r, z = sigmoid(a + b), n = tanh(a_n + r b_n), h' = (1 - z) n + z h; the output of a layer is the input of the next, with dropout between them when training: element (layer, t, batch, feature) in row-major order is dropped when its Philox word of `seed` is below the probability, otherwise divided by 1 - dropout

    x [t,b,i] ([b,t,i] with layout=batch_major; packed: the valid steps [total,i], time by time, longest sequence first), weight [n], h0 [layers*directions,b,outputs], c0 [layers*directions,b,hidden], seq_lengths i32 or i64 [b] -> y [t,b,directions*outputs], 0 past the length, hn, cn of the last valid step; absent states are 0; floating-point types. rnn_layout.hpp says where each matrix lies in weight

    Outputs: y hn (when wanted) cn (when wanted)

    In the text form:

    x = input f32[5,2,3]
    weight = input f32[144]
    h0 = input f32[1,2,4]
    c0 = input f32[1,2,4]
    y, hn, cn = rnn_fwd x weight h0 c0 mode=lstm hidden=4
    output y
    output hn
    output cn
    """

def rnn_bwd_data(x: Tensor | float, weight: Tensor | float, dy: Tensor | float, y: Tensor | float | None = None, h0: Tensor | float | None = None, c0: Tensor | float | None = None, seq_lengths: Tensor | float | None = None, dhn: Tensor | float | None = None, dcn: Tensor | float | None = None, *, mode: Literal['relu', 'tanh', 'lstm', 'gru'] = 'lstm', hidden: int = 0, proj: int = 0, layers: int = 1, bidirectional: bool = False, input: Literal['linear', 'skip'] = 'linear', bias: Literal['none', 'input', 'recurrent', 'both'] = 'both', layout: Literal['seq_major', 'batch_major'] = 'seq_major', packed: bool = False, clip_min: float | None = None, clip_max: float | None = None, clip_nan: bool = False, dropout: float = 0, seed: int = 0, phase: Literal['training', 'inference'] = 'training', wanted: str | Sequence[str] = ()) -> Outputs:
    """
    dx, dh0, dc0 = gradients of <y, dy> + <hn, dhn> + <cn, dcn>, with y, hn, cn as rnn_fwd computes them; where the cell state was clipped its gradient is 0

    x, weight, h0, c0, seq_lengths as for rnn_fwd, dy and y like its y, dhn like hn, dcn like cn -> dx like x (0 past the length), dh0 like h0, dc0 like c0; absent gradients are 0; y is not needed, engines may use it

    Outputs: dx dh0 (when wanted) dc0 (when wanted)

    In the text form:

    x = input f32[5,2,3]
    weight = input f32[96]
    dy = input f32[5,2,4]
    dx, dh0 = rnn_bwd_data x weight dy mode=gru hidden=4 bias=input
    output dx
    output dh0
    """

def rnn_bwd_weights(x: Tensor | float, weight: Tensor | float, dy: Tensor | float, h0: Tensor | float | None = None, c0: Tensor | float | None = None, seq_lengths: Tensor | float | None = None, dhn: Tensor | float | None = None, dcn: Tensor | float | None = None, *, mode: Literal['relu', 'tanh', 'lstm', 'gru'] = 'lstm', hidden: int = 0, proj: int = 0, layers: int = 1, bidirectional: bool = False, input: Literal['linear', 'skip'] = 'linear', bias: Literal['none', 'input', 'recurrent', 'both'] = 'both', layout: Literal['seq_major', 'batch_major'] = 'seq_major', packed: bool = False, clip_min: float | None = None, clip_max: float | None = None, clip_nan: bool = False, dropout: float = 0, seed: int = 0, phase: Literal['training', 'inference'] = 'training') -> Tensor:
    """
    dweight = gradient of <y, dy> + <hn, dhn> + <cn, dcn>, with y, hn, cn as rnn_fwd computes them

    x, weight, h0, c0, seq_lengths as for rnn_fwd, dy like its y, dhn like hn, dcn like cn -> dweight like weight, laid out in the same way; absent gradients are 0

    In the text form:

    x = input f32[5,2,3]
    weight = input f32[28]
    dy = input f32[5,2,4]
    dweight = rnn_bwd_weights x weight dy mode=tanh hidden=4 bias=none
    output dweight
    """

def ctc_loss(logits: Tensor | float, labels: Tensor | float, label_lengths: Tensor | float, input_lengths: Tensor | float, *, blank: int = 0, log_probs: bool = False, zero_infinity: bool = False, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    cost = -log sum over paths p that become the labels when repeats are merged and blanks removed of prod_t softmax(logits_t)[p_t]; gradients = softmax(logits_t)[c] - P(p_t = c | labels) (log_probs: minus the second term alone), 0 past the input length. When no path is long enough the cost is infinite (zero_infinity: 0) and the gradient 0

    logits [t,n,c] of a floating-point type, labels i32 or i64 [n,longest] or, one sequence after another, [total], label_lengths and input_lengths i32 or i64 [n] -> costs [n], gradients [t,n,c]; f32, f64 for f64

    Outputs: costs gradients (when wanted)

    In the text form:

    logits = input f32[6,2,5]
    labels = const i32[2,3] 1,2,0,4,4,3
    label_lengths = const i32[2] 2,3
    input_lengths = const i32[2] 6,5
    costs, gradients = ctc_loss logits labels label_lengths input_lengths
    output costs
    output gradients
    """

def gnn_agg(offsets: Tensor | float, indices: Tensor | float, node: Tensor | float | None = None, edge: Tensor | float | None = None, concat: Tensor | float | None = None, edge_map: Tensor | float | None = None, *, mode: Literal['sum', 'mean', 'max', 'min'] = 'sum', wanted: str | Sequence[str] = ()) -> Outputs:
    """
    y[v] = [agg node[indices[i]] | agg edge[edge_map[i]] | concat[v]] over the edges offsets[v] <= i < offsets[v + 1], agg = sum, mean, max or min element by element; edge_map is the identity unless given; without edges agg is 0; positions holds the i of the first maximum or minimum, -1 without edges; a NaN wins; edges whose index is out of range are left out

    offsets [d + 1], indices [e], edge_map [e] (i32 or i64), node [s, fn], edge [e', fe], concat [d, fc] -> y [d, fn + fe + fc], positions [d, fn + fe]; real types

    Outputs: y positions (when wanted)

    In the text form:

    offsets = input i32[4]
    indices = input i32[6]
    node = input f32[5,2]
    y = gnn_agg offsets indices node mode=mean
    output y
    """

def gnn_agg_bwd(dy: Tensor | float, offsets: Tensor | float, indices: Tensor | float, edge_map: Tensor | float | None = None, positions: Tensor | float | None = None, *, mode: Literal['sum', 'mean', 'max', 'min'] = 'sum', sources: int = 0, edges: int = 0, node_features: int = 0, edge_features: int = 0, wanted: str | Sequence[str] = ()) -> Outputs:
    """
    for every edge i of destination v: dnode[indices[i]] += g and dedge[edge_map[i]] += g, where g is the part of dy[v] for sum, divided by the number of edges for mean, and only where positions names i for max and min; dconcat[v] is the rest of dy[v]

    dy [d, fn + fe + fc], offsets [d + 1], indices and edge_map [e], positions [d, fn + fe] -> dnode [sources, fn], dedge [edges, fe], dconcat [d, fc]; widths and rows by the declared outputs or the options; real types

    Outputs: dnode (when wanted) dedge (when wanted) dconcat (when wanted)

    In the text form:

    dy = input f32[3,2]
    offsets = input i32[4]
    indices = input i32[6]
    dnode:dn = gnn_agg_bwd dy offsets indices mode=mean sources=5
    output dn
    """

class Plan:
    """
    A graph made ready to run on a device. Any number of threads may call it.
    """

    def __call__(self, *inputs: object, **named: object) -> Any:
        """
        Runs with these arrays: inputs by position or by name, outputs by name or, where none are given, allocated by the library of the first input. Returns the output, or a tuple of all.
        """

    def run(self, arrays: dict[str, object], stream: int | None = None) -> dict[str, Any]:
        """
        Runs with arrays by name, on a GPU in this stream (a CUstream as a number); returns the outputs by name.
        """

    def bind(self, *inputs: object, **named: object) -> Bound:
        """
        Checks arrays once and keeps them, for calls that cost little more than those of C++.
        """

    def explain(self) -> str:
        """
        What the plan does and why: a text that is drawn where it is shown in a notebook.
        """

    def page(self) -> str:
        """The explanation as a web page that needs nothing else."""

    def save(self) -> str:
        """The plan as text, for Plan.load."""

    @staticmethod
    def load(saved: str, device: str = 'cpu') -> Plan: ...

    @property
    def device(self) -> str: ...

    @property
    def workspace_bytes(self) -> int: ...

    @property
    def steps(self) -> int: ...

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs."""

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""

    def __repr__(self) -> str: ...

class Bound:
    """A plan with its arrays."""

    def __call__(self, stream: int | None = None) -> None:
        """
        Runs; on a GPU it launches, into the stream that was current when the arrays were bound.
        """

    @property
    def outputs(self) -> Any:
        """The output, or a tuple of all."""

def thread_count() -> int:
    """Threads that the CPU engines use together, the caller's included."""

def set_thread_count(n: int) -> None: ...
