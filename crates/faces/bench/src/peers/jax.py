"""JAX as a peer: everything under `jax.jit`, on its CPU device."""
# XLA takes its threads from the cores that it may use; Eigen's part of it is told as well.
several = str(threads > 1).lower()
os.environ.update(
    JAX_PLATFORMS="cpu",
    # A first run compiles, and is not read from a disk.
    JAX_ENABLE_COMPILATION_CACHE="false",
    XLA_FLAGS=f"--xla_cpu_multi_thread_eigen={several} intra_op_parallelism_threads={threads}",
    NPROC=str(threads),
)

import jax
import jax.numpy as jnp
import ml_dtypes


def arrays_of(values):
    arrays = {name: np.asarray(value) for name, value in values.items()}
    return {name: array.view(np.uint16) if array.dtype == ml_dtypes.bfloat16 else array for name, array in arrays.items()}


def given(inputs):
    # What is prepared once for a process is no part of a first run of some work.
    jax.block_until_ready(jax.jit(lambda x: x + 1)(jnp.zeros(8)))
    # numpy has no bf16; such an array comes as raw elements.
    typed = {name: array.view(ml_dtypes.bfloat16) if array.dtype.kind == "V" else array for name, array in inputs.items()}
    return {name: jnp.asarray(array) for name, array in typed.items()}


def work(function):
    def prepare(**inputs):
        arrays, made, last = given(inputs), jax.jit(function), {}

        def run():
            last.update(made(**arrays))

        def result():
            run()
            return arrays_of(last)

        return run, lambda: jax.block_until_ready(last), result

    return prepare


def mlp_step(x, label, w1, w2, w3):
    before = given({"w1": w1, "w2": w2, "w3": w3})
    x, label = jnp.asarray(x), jnp.asarray(label)
    state = {"weights": dict(before), "loss": None}

    def loss_of(weights, x, label):
        hidden = jax.nn.relu(jax.nn.relu(x @ weights["w1"]) @ weights["w2"])
        scores = jax.nn.log_softmax(hidden @ weights["w3"])
        return -scores[jnp.arange(x.shape[0]), label].mean()

    @jax.jit
    def step(weights, x, label):
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, label)
        return loss, jax.tree.map(lambda w, g: w - 0.01 * g, weights, gradients)

    def run():
        state["loss"], state["weights"] = step(state["weights"], x, label)

    def result():
        state["weights"] = dict(before)
        run()
        return arrays_of({"loss": state["loss"], **state["weights"]})

    return run, lambda: jax.block_until_ready((state["loss"], state["weights"])), result


def normalised(x, weight, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * weight + bias


def gpt2_block(d_y, **inputs):
    def block(x, ln1_w, ln1_b, attn_w, attn_b, proj_w, proj_b, ln2_w, ln2_b, fc_w, fc_b, out_w, out_b):
        length, width = x.shape
        split = (normalised(x, ln1_w, ln1_b) @ attn_w + attn_b).reshape(length, 3, 12, 64)
        query, key, value = split.transpose(1, 2, 0, 3)
        scores = query @ key.swapaxes(1, 2) / 8
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
        joined = jax.nn.softmax(scores, -1) @ value
        middle = x + joined.swapaxes(0, 1).reshape(length, width) @ proj_w + proj_b
        hidden = normalised(middle, ln2_w, ln2_b) @ fc_w + fc_b
        return middle + jax.nn.gelu(hidden, approximate=True) @ out_w + out_b

    def both(d_y, **inputs):
        y, back = jax.vjp(lambda inputs: block(**inputs), inputs)
        (gradients,) = back(d_y)
        return {"y": y, **{f"d_{name}": gradient for name, gradient in gradients.items()}}

    return work(both)(d_y=d_y, **inputs)


def lstm_step(x, h, c, wx, wh, bx, bh):
    entering, forgetting, new, leaving = jnp.split(x @ wx.T + bx + h @ wh.T + bh, 4, 1)
    cell = jax.nn.sigmoid(forgetting) * c + jax.nn.sigmoid(entering) * jnp.tanh(new)
    return {"h_next": jax.nn.sigmoid(leaving) * jnp.tanh(cell), "c_next": cell}


def resnet18(image, **w):
    def conv(x, name, stride, padding):
        x = jax.lax.conv_general_dilated(x, w[f"{name}_w"], (stride, stride), [(padding, padding)] * 2)
        mean, var, gamma, beta = (w[f"{name}_{part}"][:, None, None] for part in ("mean", "var", "gamma", "beta"))
        return (x - mean) * (gamma * jax.lax.rsqrt(var + 1e-5)) + beta

    x = jax.nn.relu(conv(image[None], "stem", 2, 3))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), [(0, 0)] * 2 + [(1, 1)] * 2)
    for stage in range(1, 5):
        for block in range(2):
            name, stride = f"s{stage}b{block}", 2 if stage > 1 and block == 0 else 1
            y = conv(jax.nn.relu(conv(x, f"{name}_conv1", stride, 1)), f"{name}_conv2", 1, 1)
            x = jax.nn.relu(y + (conv(x, f"{name}_down", stride, 0) if stride == 2 else x))
    return {"scores": (x.mean((2, 3)) @ w["fc_w"].T + w["fc_b"])[0]}


def attention(query, key, value):
    return {"Y": jax.nn.softmax(query @ key.swapaxes(1, 2) / 8, -1) @ value}


def conv(W, X, padding):
    return {"Y": jax.lax.conv_general_dilated(X[None], W, (1, 1), [(padding, padding)] * 2)[0]}


serve(
    {
        "matmul": work(lambda A, B: {"C": A @ B}),
        "matmul_bf16": work(lambda A, B: {"C": A @ B}),
        "conv": work(lambda W, X: conv(W, X, 0)),
        "conv_padded": work(lambda W, X: conv(W, X, 1)),
        "attention": work(attention),
        "softmax": work(lambda X: {"Y": jax.nn.softmax(X, -1)}),
        "layernorm": work(lambda X, weight, bias: {"Y": normalised(X, weight, bias)}),
        "gelu": work(lambda X: {"Y": jax.nn.gelu(X, approximate=True)}),
        "relu_square": work(lambda X: {"Y": jax.nn.relu(X * X + 1)}),
        "sum_rows": work(lambda X: {"Y": X.sum(1)}),
        "sum_cols": work(lambda X: {"Y": X.sum(0)}),
        "mlp_step": mlp_step,
        "resnet18": work(resnet18),
        "gpt2_block": gpt2_block,
        "lstm_step": work(lstm_step),
    },
    version=jax.__version__,
)
