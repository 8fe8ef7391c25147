"""loop_tool as a peer: everything in its default schedule, on the backend that it chooses itself.

It has no states and one result for each program, so that a step of training is not among these.
"""
import loop_tool as lt

# An array that was read shares its tensor's memory, and is kept: loop_tool would free it and write to it again.
kept = []


def work(build):
    def prepare(**inputs):
        name, tensor = build(**inputs)

        def run():
            tensor.force_recompute()
            tensor.resolve()

        def result():
            run()
            array = tensor.numpy()
            kept.append((tensor, array))
            return {name: array}

        return run, lambda: None, result

    return prepare


def tensor(array):
    return lt.Tensor(*array.shape).set(array)


def number(value):
    return lt.Tensor().set(value)


def matmul(A, B):
    s = lt.SymbolGenerator()
    return "C", (tensor(A).to(s.m, s.k) * tensor(B).to(s.k, s.n)).sum(s.k)


def conv(W, X, padding):
    s = lt.SymbolGenerator()
    # Weights first: the default schedule then has a unit-stride inner loop, which is several times
    # faster than the other way round.
    weights = tensor(W).to(s.Co, s.C, s.Kh, s.Kw)
    image = tensor(X).to(s.C, s.H, s.W)
    if padding:
        image = image.pad(s.H, padding).pad(s.W, padding)
    channel, height, width = image.symbolic_shape
    places = [(height, s.Y + s.Kh), (width, s.X + s.Kw)]
    windows = image.to(channel, s.Y, s.X, s.Kh, s.Kw, constraints=places)
    return "Y", (weights * windows).sum(channel, s.Kh, s.Kw).transpose(s.Co, s.Y, s.X)


def softmax_of(scores, along):
    weights = (scores - scores.max_reduce(along)).exp()
    return weights / weights.sum(along)


def attention(query, key, value):
    s = lt.SymbolGenerator()
    scores = (tensor(query).to(s.h, s.q, s.d) * tensor(key).to(s.h, s.k, s.d)).sum(s.d)
    shares = softmax_of(scores * number(1 / 8), s.k)
    return "Y", (shares * tensor(value).to(s.h, s.k, s.e)).sum(s.k).transpose(s.h, s.q, s.e)


def softmax(X):
    s = lt.SymbolGenerator()
    return "Y", softmax_of(tensor(X).to(s.i, s.j), s.j)


def layernorm(X, weight, bias):
    s = lt.SymbolGenerator()
    x, share = tensor(X).to(s.i, s.j), number(1 / X.shape[1])
    centred = x - x.sum(s.j) * share
    variance = (centred * centred).sum(s.j) * share
    normal = centred / (variance + number(1e-5)).sqrt()
    return "Y", normal * tensor(weight).to(s.j) + tensor(bias).to(s.j)


def gelu(X):
    # There is no tanh; tanh(z) = 1 - 2 / (exp(2z) + 1) leaves one division.
    s = lt.SymbolGenerator()
    x = tensor(X).to(s.i, s.j)
    doubled = (x * x * x * number(0.044715) + x) * number(2 * 0.7978845608028654)
    return "Y", x - x / (doubled.exp() + number(1))


def relu_square(X):
    s = lt.SymbolGenerator()
    x = tensor(X).to(s.i, s.j)
    return "Y", (x * x + number(1)).max(number(0))


def sum_rows(X):
    s = lt.SymbolGenerator()
    return "Y", tensor(X).to(s.i, s.j).sum(s.j)


def sum_cols(X):
    s = lt.SymbolGenerator()
    return "Y", tensor(X).to(s.i, s.j).sum(s.i)


serve(
    {
        "matmul": work(matmul),
        "conv": work(lambda W, X: conv(W, X, 0)),
        "conv_padded": work(lambda W, X: conv(W, X, 1)),
        "attention": work(attention),
        "softmax": work(softmax),
        "layernorm": work(layernorm),
        "gelu": work(gelu),
        "relu_square": work(relu_square),
        "sum_rows": work(sum_rows),
        "sum_cols": work(sum_cols),
        "mlp_step": "no states",
        "gpt2_block": "one result for a program",
        "lstm_step": "one result for a program",
        "matmul_bf16": "no bf16",
    },
    version="0.1.0",
)
