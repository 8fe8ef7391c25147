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


def normalised(x, weight, bias):
    return x.layernorm(eps=1e-5) * weight + bias


def gpt2_block(**inputs):
    given = {name: Tensor(array).realize() for name, array in inputs.items()}

    def block(x, d_y, **w):
        length, width = x.shape
        split = (normalised(x, w["ln1_w"], w["ln1_b"]) @ w["attn_w"] + w["attn_b"]).reshape(length, 3, 12, 64)
        query, key, value = (split[:, part].transpose(0, 1) for part in range(3))
        joined = query.scaled_dot_product_attention(key, value, is_causal=True)
        joined = joined.transpose(0, 1).reshape(length, width)
        middle = x + joined @ w["proj_w"] + w["proj_b"]
        hidden = normalised(middle, w["ln2_w"], w["ln2_b"]) @ w["fc_w"] + w["fc_b"]
        y = middle + hidden.gelu() @ w["out_w"] + w["out_b"]
        names = ["x", *w]
        gradients = (y * d_y).sum().gradient(x, *w.values())
        return {"y": y, **{f"d_{name}": gradient for name, gradient in zip(names, gradients)}}

    run = jitted(block, given)
    return run, finish, lambda: {name: value.numpy() for name, value in run().items()}


def lstm_step(x, h, c, wx, wh, bx, bh):
    entering, forgetting, new, leaving = (x @ wx.T + bx + h @ wh.T + bh).chunk(4, 1)
    cell = forgetting.sigmoid() * c + entering.sigmoid() * new.tanh()
    return {"h_next": leaving.sigmoid() * cell.tanh(), "c_next": cell}


def resnet18(image, **w):
    def conv(x, name, stride, padding):
        x = x.conv2d(w[f"{name}_w"], stride=stride, padding=padding)
        mean, var, gamma, beta = (w[f"{name}_{part}"] for part in ("mean", "var", "gamma", "beta"))
        return x.batchnorm(gamma, beta, mean, (var + 1e-5).rsqrt())

    x = conv(image.unsqueeze(0), "stem", 2, 3).relu().max_pool2d((3, 3), stride=2, padding=1)
    for stage in range(1, 5):
        for block in range(2):
            name, stride = f"s{stage}b{block}", 2 if stage > 1 and block == 0 else 1
            y = conv(conv(x, f"{name}_conv1", stride, 1).relu(), f"{name}_conv2", 1, 1)
            x = (y + (conv(x, f"{name}_down", stride, 0) if stride == 2 else x)).relu()
    return {"scores": (x.mean((2, 3)) @ w["fc_w"].T + w["fc_b"]).squeeze(0)}


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
        "layernorm": work(lambda X, weight, bias: {"Y": normalised(X, weight, bias)}),
        "gelu": work(lambda X: {"Y": X.gelu()}),
        "relu_square": work(lambda X: {"Y": (X * X + 1).relu()}),
        "sum_rows": work(lambda X: {"Y": X.sum(1)}),
        "sum_cols": work(lambda X: {"Y": X.sum(0)}),
        "mlp_step": mlp_step,
        "resnet18": work(resnet18),
        "gpt2_block": gpt2_block,
        "lstm_step": work(lstm_step),
    },
    version=importlib.metadata.version("tinygrad"),
)
