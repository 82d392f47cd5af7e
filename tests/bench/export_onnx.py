"""Writes the bundled networks as ONNX graphs, so that other inference engines can run the same weights.

usage: export_onnx.py MODELS_DIR OUT_DIR [--check REFERENCE_DIR]

trunk.onnx         fbank [batch, frames, 80] -> features [batch, 2560, frames / 8], batch normalisation folded
segmentation.onnx  wave [batch, 1, samples] -> log-probabilities [batch, frames, 7]

--check compares the segmentation with waveN.wav and segmentationN.npy of REFERENCE_DIR, and the trunk with fbankN.npy
and embedding_nomaskN.npy. Needs numpy, onnx, safetensors; --check also onnxruntime and soundfile.
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

BATCH_NORM_EPSILON = 1e-5
INSTANCE_NORM_EPSILON = 1e-5
STAGES = ((32, 3), (64, 4), (128, 6), (256, 3))


class Graph:
    """Collects nodes and constants; every method returns the name of its output."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, array):
        name = f"constant{len(self.constants)}"
        array = np.ascontiguousarray(array)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind, *inputs, output=None, **attributes):
        output = output or f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def save(self, path, inputs, outputs):
        info = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in side] for side in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, path.stem, *info, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        onnx.save(model, path)


def export_trunk(weights, path):
    g = Graph()

    def conv(x, conv_name, norm, stride):
        w = weights[conv_name + ".weight"]
        scale = weights[norm + ".weight"] / np.sqrt(weights[norm + ".running_var"] + BATCH_NORM_EPSILON)
        kernel = w.shape[-1]
        return g.node(
            "Conv",
            x,
            g.constant(w * scale[:, None, None, None]),
            g.constant(weights[norm + ".bias"] - weights[norm + ".running_mean"] * scale),
            kernel_shape=[kernel, kernel],
            pads=[kernel // 2] * 4,
            strides=[stride, stride],
        )

    x = g.node("Transpose", "fbank", perm=[0, 2, 1])
    x = g.node("Unsqueeze", x, g.constant(np.array([1], np.int64)))
    x = g.node("Relu", conv(x, "resnet.conv1", "resnet.bn1", 1))
    for stage, (_, blocks) in enumerate(STAGES):
        for block in range(blocks):
            prefix = f"resnet.layer{stage + 1}.{block}"
            stride = 2 if stage and not block else 1
            y = g.node("Relu", conv(x, prefix + ".conv1", prefix + ".bn1", stride))
            y = conv(y, prefix + ".conv2", prefix + ".bn2", 1)
            if prefix + ".shortcut.0.weight" in weights:
                x = conv(x, prefix + ".shortcut.0", prefix + ".shortcut.1", stride)
            x = g.node("Relu", g.node("Add", y, x))
    g.node("Reshape", x, g.constant(np.array([0, 2560, -1], np.int64)), output="features")
    g.save(path, [("fbank", ["batch", "frames", 80])], [("features", ["batch", 2560, "pooled"])])


def export_segmentation(weights, path):
    g = Graph()

    def norm(x, name):
        scale, shift = (g.constant(weights[f"sincnet.{name}.{part}"]) for part in ("weight", "bias"))
        return g.node("InstanceNormalization", x, scale, shift, epsilon=INSTANCE_NORM_EPSILON)

    x = norm("wave", "wav_norm1d")
    for layer in range(3):
        if layer == 0:
            w = g.constant(weights["sincnet.conv1d.0.materialised_filters"])
            x = g.node("Abs", g.node("Conv", x, w, kernel_shape=[251], strides=[10]))
        else:
            w, b = (g.constant(weights[f"sincnet.conv1d.{layer}.{part}"]) for part in ("weight", "bias"))
            x = g.node("Conv", x, w, b, kernel_shape=[5])
        x = g.node("MaxPool", x, kernel_shape=[3], strides=[3])
        x = g.node("LeakyRelu", norm(x, f"norm1d.{layer}"), alpha=0.01)

    x = g.node("Transpose", x, perm=[2, 0, 1])
    shape = g.constant(np.array([0, 0, -1], np.int64))
    # PyTorch orders the gates input, forget, cell, output; ONNX input, output, forget, cell.
    order = np.r_[0:128, 384:512, 128:256, 256:384]
    for layer in range(4):
        names = (f"l{layer}", f"l{layer}_reverse")
        stack = lambda kind: np.stack([weights[f"lstm.{kind}_{n}"][order] for n in names])
        bias = np.concatenate([stack("bias_ih"), stack("bias_hh")], axis=1)
        parts = (g.constant(a) for a in (stack("weight_ih"), stack("weight_hh"), bias))
        x = g.node("LSTM", x, *parts, hidden_size=128, direction="bidirectional")
        x = g.node("Reshape", g.node("Transpose", x, perm=[0, 2, 1, 3]), shape)
    x = g.node("Transpose", x, perm=[1, 0, 2])
    for name in ("linear.0", "linear.1", "classifier"):
        x = g.node("MatMul", x, g.constant(weights[name + ".weight"].T))
        x = g.node("Add", x, g.constant(weights[name + ".bias"]))
        if name != "classifier":
            x = g.node("LeakyRelu", x, alpha=0.01)
    g.node("LogSoftmax", x, axis=-1, output="logprob")
    g.save(path, [("wave", ["batch", 1, "samples"])], [("logprob", ["batch", "frames", 7])])


def check(out, weights, reference):
    import onnxruntime
    import soundfile

    trunk, segmentation = (onnxruntime.InferenceSession(out / f"{n}.onnx") for n in ("trunk", "segmentation"))
    for n in (0, 1):
        wave = soundfile.read(reference / f"wave{n}.wav", dtype="float32")[0][None, None]
        found = segmentation.run(None, {"wave": wave})[0][0]
        error = np.abs(found - np.load(reference / f"segmentation{n}.npy")).max()
        features = trunk.run(None, {"fbank": np.load(reference / f"fbank{n}.npy")[None]})[0][0]
        stats = np.concatenate([features.mean(1), features.std(1, ddof=1)])
        embedding = weights["resnet.seg_1.weight"] @ stats + weights["resnet.seg_1.bias"]
        expected = np.load(reference / f"embedding_nomask{n}.npy").ravel()
        cosine = embedding @ expected / np.linalg.norm(embedding) / np.linalg.norm(expected)
        print(f"wave{n}: segmentation differs by {error:.1e} at most, embedding cosine {cosine:.8f}")
        assert error < 1e-3 and cosine > 0.99999


def main():
    models, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    load = lambda n: {k: v.astype(np.float32) for k, v in load_file(models / n / f"{n}.safetensors").items()}
    embedding = load("embedding-resnet34")
    export_trunk(embedding, out / "trunk.onnx")
    export_segmentation(load("segmentation-3.0"), out / "segmentation.onnx")
    if sys.argv[3:4] == ["--check"]:
        check(out, embedding, Path(sys.argv[4]))


if __name__ == "__main__":
    main()
