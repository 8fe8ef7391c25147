"""tinygrad as a peer: its CPU device with the schedules it makes by itself, no search, replayed by its JIT."""
import importlib.metadata
import shutil

# It compiles with clang, which many systems only have under a name with its version.
names = ["clang", *(f"clang-{version}" for version in range(30, 13, -1))]
compiler = next(filter(shutil.which, names), None)
if compiler is None:
    answer(problem="tinygrad compiles with clang, and there is none; on Debian, `apt-get install clang` brings it")
    sys.exit(1)
os.environ.update(DEV="CPU", CC=compiler, NUM_CPU_THREADS=str(threads), BEAM="0")
# A first run compiles, and is not read from a disk.
os.environ["CACHELEVEL"] = "0"

from tinygrad import Device, Tensor, TinyJit


def finish():
    Device["CPU"].synchronize()


def jitted(function, tensors):
    """Runs `function`; captured in the second run and replayed from the third."""
    step = TinyJit(lambda **tensors: {name: value.realize() for name, value in function(**tensors).items()})
    return lambda: step(**tensors)


def work(function):
    def prepare(**inputs):
        run = jitted(function, {name: Tensor(array).realize() for name, array in inputs.items()})
        return run, finish, lambda: {name: value.numpy() for name, value in run().items()}

    return prepare


def mlp_step(x, label, w1, w2, w3):
    given = {"w1": w1, "w2": w2, "w3": w3}
    weights = {name: Tensor(array).realize() for name, array in given.items()}

    def train(x, label):
        hidden = (x @ weights["w1"]).relu()
        hidden = (hidden @ weights["w2"]).relu()
        loss = (hidden @ weights["w3"]).sparse_categorical_crossentropy(label)
        gradients = loss.gradient(*weights.values())
        moved = [w.assign(w - 0.01 * g) for w, g in zip(weights.values(), gradients)]
        Tensor.realize(loss, *moved)
        return {"loss": loss}

    run = jitted(train, {"x": Tensor(x).realize(), "label": Tensor(label).realize()})

    def result():
        for name, array in given.items():
            weights[name].assign(Tensor(array)).realize()
        loss = run()["loss"].numpy()
        return {"loss": loss, **{name: w.numpy() for name, w in weights.items()}}

    return run, finish, result


def attention(query, key, value):
    return {"Y": query.scaled_dot_product_attention(key, value)}


def conv(W, X, padding):
    return {"Y": X.unsqueeze(0).conv2d(W, padding=padding).squeeze(0)}


serve(
    {
        "matmul": work(lambda A, B: {"C": A @ B}),
        "conv": work(lambda W, X: conv(W, X, 0)),
        "conv_padded": work(lambda W, X: conv(W, X, 1)),
        "attention": work(attention),
        "softmax": work(lambda X: {"Y": X.softmax(-1)}),
        "layernorm": work(lambda X, weight, bias: {"Y": X.layernorm(eps=1e-5) * weight + bias}),
        "gelu": work(lambda X: {"Y": X.gelu()}),
        "relu_square": work(lambda X: {"Y": (X * X + 1).relu()}),
        "sum_rows": work(lambda X: {"Y": X.sum(1)}),
        "sum_cols": work(lambda X: {"Y": X.sum(0)}),
        "mlp_step": mlp_step,
    },
    version=importlib.metadata.version("tinygrad"),
)
