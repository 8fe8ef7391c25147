"""numpy as a peer, with the OpenBLAS of its wheel. It has no convolutions and no gradients."""


def work(function):
    def prepare(**inputs):
        return lambda: function(**inputs), lambda: None, lambda: function(**inputs)

    return prepare


def softmax_of(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights


def attention(query, key, value):
    return {"Y": softmax_of(query @ key.transpose(0, 2, 1) * np.float32(1 / 8)) @ value}


def layernorm(X, weight, bias):
    centred = X - X.mean(-1, keepdims=True)
    variance = np.mean(centred * centred, -1, keepdims=True)
    return {"Y": centred / np.sqrt(variance + np.float32(1e-5)) * weight + bias}


def gelu(X):
    inner = np.float32(0.7978845608028654) * (X + np.float32(0.044715) * X * X * X)
    return {"Y": np.float32(0.5) * X * (1 + np.tanh(inner))}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(x, h, c, wx, wh, bx, bh):
    entering, forgetting, new, leaving = np.split(x @ wx.T + bx + h @ wh.T + bh, 4, 1)
    cell = sigmoid(forgetting) * c + sigmoid(entering) * np.tanh(new)
    return {"h_next": sigmoid(leaving) * np.tanh(cell), "c_next": cell}


serve(
    {
        "matmul": work(lambda A, B: {"C": A @ B}),
        "conv": "no convolution",
        "conv_padded": "no convolution",
        "attention": work(attention),
        "softmax": work(lambda X: {"Y": softmax_of(X)}),
        "layernorm": work(layernorm),
        "gelu": work(gelu),
        "relu_square": work(lambda X: {"Y": np.maximum(X * X + 1, 0)}),
        "sum_rows": work(lambda X: {"Y": X.sum(1)}),
        "sum_cols": work(lambda X: {"Y": X.sum(0)}),
        "mlp_step": "no gradients",
        "resnet18": "no convolution",
        "gpt2_block": "no gradients",
        "lstm_step": work(lstm_step),
        "matmul_bf16": "no bf16",
    },
    version=np.__version__,
)
