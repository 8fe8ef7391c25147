"""onnxruntime as a peer: models built node by node, on its CPU provider. It runs models and does not train them."""
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 20


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


class Model:
    """A model that is being built. Data are inputs of it, weights are its constants, as exporters make them."""

    def __init__(self, inputs, data):
        self.data = {name: inputs[name] for name in data}
        self.constants = [
            numpy_helper.from_array(array, name) for name, array in inputs.items() if name not in data
        ]
        self.nodes = []

    def constant(self, array):
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, kind, *inputs, outputs=1, name=None, **attributes):
        names = [name or f"value{len(self.nodes)}_{at}" for at in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def named(self, value, name):
        return self.node("Identity", value, name=name)

    def finish(self, *outputs):
        described = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape) for name, array in self.data.items()
        ]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "work", described, results, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def work(build, data):
    def prepare(**inputs):
        model, outputs = build(Model(inputs, data), inputs)
        # Arrays are bound where they are; what comes out stays in onnxruntime's memory.
        state = {}

        def run():
            if not state:
                session = session_of(model.finish(*outputs))
                binding = session.io_binding()
                for name, array in model.data.items():
                    binding.bind_cpu_input(name, array)
                for name in outputs:
                    binding.bind_output(name)
                state.update(session=session, binding=binding)
            state["session"].run_with_iobinding(state["binding"])

        def result():
            run()
            return dict(zip(outputs, state["binding"].copy_outputs_to_cpu()))

        return run, lambda: None, result

    return prepare


def unary(kind, **attributes):
    def build(m, inputs):
        m.node(kind, "X", name="Y", **attributes)
        return m, ["Y"]

    return work(build, ["X"])


def matmul(m, inputs):
    m.node("MatMul", "A", "B", name="C")
    return m, ["C"]


def conv(padding):
    def build(m, inputs):
        image = m.node("Unsqueeze", "X", m.constant(np.int64([0])))
        y = m.node("Conv", image, "W", pads=[padding] * 4)
        m.node("Squeeze", y, m.constant(np.int64([0])), name="Y")
        return m, ["Y"]

    return work(build, ["X"])


def attention(m, inputs):
    scores = m.node("MatMul", "query", m.node("Transpose", "key", perm=[0, 2, 1]))
    shares = m.node("Softmax", m.node("Mul", scores, m.constant(np.float32(1 / 8))), axis=-1)
    m.node("MatMul", shares, "value", name="Y")
    return m, ["Y"]


def layernorm(m, inputs):
    m.node("LayerNormalization", "X", "weight", "bias", name="Y", axis=-1, epsilon=1e-5)
    return m, ["Y"]


def relu_square(m, inputs):
    one = m.constant(np.float32(1))
    m.node("Relu", m.node("Add", m.node("Mul", "X", "X"), one), name="Y")
    return m, ["Y"]


def total(axis):
    def build(m, inputs):
        m.node("ReduceSum", "X", m.constant(np.int64([axis])), name="Y", keepdims=0)
        return m, ["Y"]

    return work(build, ["X"])


def lstm_step(x, h, c, wx, wh, bx, bh):
    def turned(array):
        # Its gates come in another order.
        entering, forgetting, new, leaving = np.split(array, 4, 0)
        return np.concatenate([entering, leaving, forgetting, new])[None]

    inputs = {"x": x[None], "h": h[None], "c": c[None], "wx": turned(wx), "wh": turned(wh)}
    inputs["b"] = np.concatenate([turned(bx), turned(bh)], 1)

    def build(m, inputs):
        ends = m.node("LSTM", "x", "wx", "wh", "b", "", "h", "c", outputs=3, hidden_size=h.shape[1])
        for end, name in zip(ends[1:], ("h_next", "c_next")):
            m.node("Squeeze", end, m.constant(np.int64([0])), name=name)
        return m, ["h_next", "c_next"]

    return work(build, ["x", "h", "c"])(**inputs)


def resnet18(m, inputs):
    def conv(x, name, stride, padding):
        x = m.node("Conv", x, f"{name}_w", strides=[stride] * 2, pads=[padding] * 4)
        parts = (f"{name}_{part}" for part in ("gamma", "beta", "mean", "var"))
        return m.node("BatchNormalization", x, *parts, epsilon=1e-5)

    x = m.node("Unsqueeze", "image", m.constant(np.int64([0])))
    x = m.node("Relu", conv(x, "stem", 2, 3))
    x = m.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage in range(1, 5):
        for block in range(2):
            name, stride = f"s{stage}b{block}", 2 if stage > 1 and block == 0 else 1
            y = conv(m.node("Relu", conv(x, f"{name}_conv1", stride, 1)), f"{name}_conv2", 1, 1)
            x = m.node("Relu", m.node("Add", y, conv(x, f"{name}_down", stride, 0) if stride == 2 else x))
    flat = m.node("Flatten", m.node("GlobalAveragePool", x))
    scores = m.node("Gemm", flat, "fc_w", "fc_b", transB=1)
    m.node("Squeeze", scores, m.constant(np.int64([0])), name="scores")
    return m, ["scores"]


serve(
    {
        "matmul": work(matmul, ["A", "B"]),
        "matmul_bf16": "no bf16 products on its CPU provider",
        "conv": conv(0),
        "conv_padded": conv(1),
        "attention": work(attention, ["query", "key", "value"]),
        "softmax": unary("Softmax", axis=-1),
        "layernorm": work(layernorm, ["X"]),
        "gelu": unary("Gelu", approximate="tanh"),
        "relu_square": work(relu_square, ["X"]),
        "sum_rows": total(1),
        "sum_cols": total(0),
        "mlp_step": "no gradients",
        "resnet18": work(resnet18, ["image"]),
        "gpt2_block": "no gradients",
        "lstm_step": lstm_step,
    },
    version=onnxruntime.__version__,
)
