"""PyTorch as two peers: `torch` runs op by op, `torch-compile` runs what `torch.compile` makes by itself."""
import shutil
import tempfile

# A first run compiles, and is not read from a disk. The folder goes away with the process.
compiled = tempfile.TemporaryDirectory()
os.environ["TORCHINDUCTOR_CACHE_DIR"] = compiled.name
# What every process would compile again before its first work, kept in the environment's folder.
WARM = os.path.abspath("compiled-once")

import torch
import torch.nn.functional as F

torch.set_num_threads(threads)
torch.set_num_interop_threads(1)


def compiler(function):
    if peer == "torch":
        return function
    # What is prepared once for a process or an installation is no part of a first run of some work: looking
    # for the C++ compiler, asking the processor what it has.
    if os.path.isdir(WARM):
        shutil.copytree(WARM, compiled.name, dirs_exist_ok=True)
    torch.compile(lambda x: torch.exp(x) + 1)(torch.zeros(1024))
    if not os.path.isdir(WARM):
        half_written = f"{WARM}.{os.getpid()}"
        shutil.copytree(compiled.name, half_written)
        os.rename(half_written, WARM)
    torch._dynamo.reset()
    return torch.compile(function)


def tensor(array):
    # numpy has no bf16; such an array comes as raw elements.
    if array.dtype.kind == "V":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def array_of(tensor):
    tensor = tensor.detach()
    return tensor.view(torch.int16).numpy().view(np.uint16) if tensor.dtype == torch.bfloat16 else tensor.numpy()


def arrays_of(tensors):
    return {name: array_of(value) for name, value in tensors.items()}


def work(function):
    def prepare(**inputs):
        # For the whole process, since to say it anew for each run takes longer than some runs.
        torch.set_grad_enabled(False)
        tensors = {name: tensor(array) for name, array in inputs.items()}
        made = compiler(function)

        def run():
            return made(**tensors)

        return run, lambda: None, lambda: arrays_of(run())

    return prepare


def mlp_step(x, label, w1, w2, w3):
    given = {"w1": w1, "w2": w2, "w3": w3}
    weights = {name: tensor(array.copy()).requires_grad_() for name, array in given.items()}
    x, label = tensor(x), tensor(label)

    def loss_of(x, label, w1, w2, w3):
        hidden = torch.relu(torch.relu(x @ w1) @ w2)
        return F.cross_entropy(hidden @ w3, label)

    made = compiler(loss_of)

    def run():
        loss = made(x, label, **weights)
        loss.backward()
        with torch.no_grad():
            for w in weights.values():
                w -= 0.01 * w.grad
                w.grad = None
        return loss

    def result():
        with torch.no_grad():
            for name, array in given.items():
                weights[name].copy_(tensor(array))
        loss = run()
        return arrays_of({"loss": loss, **weights})

    return run, lambda: None, result


def gpt2_block(d_y, **inputs):
    names = list(inputs)
    tensors = {name: tensor(array).requires_grad_() for name, array in inputs.items()}
    d_y = tensor(d_y)

    def block(x, ln1_w, ln1_b, attn_w, attn_b, proj_w, proj_b, ln2_w, ln2_b, fc_w, fc_b, out_w, out_b):
        length, width = x.shape
        split = (F.layer_norm(x, (width,), ln1_w, ln1_b) @ attn_w + attn_b).view(length, 3, 12, 64)
        query, key, value = split.permute(1, 2, 0, 3)
        joined = F.scaled_dot_product_attention(query[None], key[None], value[None], is_causal=True)[0]
        middle = x + joined.transpose(0, 1).reshape(length, width) @ proj_w + proj_b
        hidden = F.layer_norm(middle, (width,), ln2_w, ln2_b) @ fc_w + fc_b
        return middle + F.gelu(hidden, approximate="tanh") @ out_w + out_b

    made = compiler(block)

    def run():
        y = made(**tensors)
        y.backward(d_y)
        results = {"y": y, **{f"d_{name}": tensors[name].grad for name in names}}
        for value in tensors.values():
            value.grad = None
        return results

    return run, lambda: None, lambda: arrays_of(run())


def lstm_step(x, h, c, wx, wh, bx, bh):
    h_next, c_next = torch.lstm_cell(x, (h, c), wx, wh, bx, bh)
    return {"h_next": h_next, "c_next": c_next}


def resnet18(image, **w):
    def conv(x, name, stride, padding):
        x = F.conv2d(x, w[f"{name}_w"], stride=stride, padding=padding)
        return F.batch_norm(x, *(w[f"{name}_{part}"] for part in ("mean", "var", "gamma", "beta")), eps=1e-5)

    x = F.max_pool2d(F.relu(conv(image[None], "stem", 2, 3)), 3, stride=2, padding=1)
    for stage in range(1, 5):
        for block in range(2):
            name, stride = f"s{stage}b{block}", 2 if stage > 1 and block == 0 else 1
            y = conv(F.relu(conv(x, f"{name}_conv1", stride, 1)), f"{name}_conv2", 1, 1)
            x = F.relu(y + (conv(x, f"{name}_down", stride, 0) if stride == 2 else x))
    return {"scores": F.linear(x.mean((2, 3)), w["fc_w"], w["fc_b"])[0]}


def attention(query, key, value):
    return {"Y": F.scaled_dot_product_attention(query[None], key[None], value[None])[0]}


def conv(W, X, padding):
    return {"Y": F.conv2d(X[None], W, padding=padding)[0]}


serve(
    {
        "matmul": work(lambda A, B: {"C": A @ B}),
        "matmul_bf16": work(lambda A, B: {"C": A @ B}),
        "conv": work(lambda W, X: conv(W, X, 0)),
        "conv_padded": work(lambda W, X: conv(W, X, 1)),
        "attention": work(attention),
        "softmax": work(lambda X: {"Y": torch.softmax(X, -1)}),
        "layernorm": work(lambda X, weight, bias: {"Y": F.layer_norm(X, (X.shape[1],), weight, bias)}),
        "gelu": work(lambda X: {"Y": F.gelu(X, approximate="tanh")}),
        "relu_square": work(lambda X: {"Y": torch.relu(X * X + 1)}),
        "sum_rows": work(lambda X: {"Y": X.sum(1)}),
        "sum_cols": work(lambda X: {"Y": X.sum(0)}),
        "mlp_step": mlp_step,
        "resnet18": work(resnet18),
        "gpt2_block": gpt2_block,
        "lstm_step": work(lstm_step),
    },
    version=torch.__version__,
)
