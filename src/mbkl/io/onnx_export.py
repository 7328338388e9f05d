"""Export of classifiers and regressors to ONNX, alone or in a pipeline of scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.classifier import KernelClassifier, MBKLClassifier
from mbkl.engine.files import write_atomically
from mbkl.extras import require
from mbkl.io.exports import Column, check_exportable, columns_of_model
from mbkl.io.onnx_scores import ML_DOMAIN, ML_OPSET, OPSET, Graph, Tensor, scores_of
from mbkl.kernel_predictor import KernelPredictor
from mbkl.levels import columns_of
from mbkl.regressor import KernelRegressor, MBKLRegressor

_INPUT = "X"


def to_onnx(model: KernelPredictor, columns: Sequence[str] | None = None):
    """Return a classifier or regressor as an ONNX model.

    Its input is a float32 tensor "X" of shape (n_rows, n_features), in which missing values are
    NaN. The outputs of a classifier are "label" and "probabilities" of shape (n_rows, n_classes),
    float32. One without probabilities has "scores" instead; with two classes these are minus the
    score and the score. The output of a regressor is "prediction" of shape (n_rows,) or
    (n_rows, n_outputs), float32. Tables are stored as float32 and added in double precision: labels
    are those of `predict` on the same float32 rows, unless two scores are as good as equal, and
    numbers agree to six digits.

    A model with categories has the columns of its frame as inputs, by their names and of shape
    (n_rows, 1): float32 for numbers and booleans, strings for text, where the empty string
    means missing. `onnx_inputs` creates them from a frame.

    Parameters
    ----------
    model : MBKLClassifier, MBKLRegressor, or one of their searches
    columns : list of str or None, default=None
        Names of the features in a frame, whose columns are then the inputs; None means those of
        a model with categories.

    Returns
    -------
    model : onnx.ModelProto

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.io import to_onnx
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MBKLClassifier(maps="stumps", random_state=0).fit(X, y)
    >>> session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    >>> label, scores = session.run(None, {"X": X.astype(np.float32)})
    >>> bool((label == model.predict(X.astype(np.float32))).all())
    True
    """
    check_exportable(model)
    inputs_of_model = columns_of_model(model, columns)
    if inputs_of_model is None:
        X, inputs = Tensor(Graph(), _INPUT), {_INPUT: (np.float32, (None, model.n_features_in_))}
    else:
        # The prefix makes names inside the graph longer than, so different from, all column names.
        longest = max(len(column.name) for column in inputs_of_model)
        X, inputs = _features(Graph("mbkl_".ljust(longest, "_")), inputs_of_model)
    outputs = {}
    for name, (tensor, dtype, shape) in _outputs(scores_of(X, model.predictor_), model).items():
        if name in inputs:
            raise ValueError(f"A column has the name {name!r}, that of an output; rename it.")
        X.graph.rename(tensor, name)
        outputs[name] = dtype, shape
    return X.graph.model(inputs, outputs)


def export_onnx(
    model: KernelPredictor,
    path: str | os.PathLike,
    columns: Sequence[str] | None = None,
) -> None:
    """Write a classifier or regressor to an ONNX file.

    Parameters
    ----------
    model, columns
        See `to_onnx`.
    path : path
    """
    write_atomically(path, [to_onnx(model, columns).SerializeToString()])


def register_onnx_converter() -> None:
    """Register converters of classifiers and regressors with skl2onnx, also for pipelines.

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.io import register_onnx_converter
    >>> from skl2onnx import to_onnx
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> register_onnx_converter()
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), MBKLClassifier(maps="stumps")).fit(X, y)
    >>> to_onnx(pipeline, X[:1].astype("float32")).graph.output[0].name
    'output_label'
    """
    from mbkl.search import MBKLClassifierCV, MBKLRegressorCV

    skl2onnx = require("skl2onnx", "onnx")
    shapes = require("skl2onnx.common.shape_calculator", "onnx")
    for kind in (MBKLClassifier, MBKLClassifierCV):
        skl2onnx.update_registered_converter(
            kind,
            f"Mbkl{kind.__name__}",
            shapes.calculate_linear_classifier_output_shapes,
            _convert,
            options={"zipmap": [True, False, "columns"], "nocl": [True, False]},
        )
    for kind in (MBKLRegressor, MBKLRegressorCV):
        skl2onnx.update_registered_converter(
            kind, f"Mbkl{kind.__name__}", _set_output_shape, _convert
        )


def _convert(scope, operator, container) -> None:
    """Add the operators of a model to a graph of skl2onnx."""
    model = operator.raw_operator
    check_exportable(model)
    if model.n_levels is not None:
        raise TypeError("skl2onnx takes numbers alone; use mbkl.io.to_onnx for categories.")
    graph = Graph(scope.get_unique_variable_name("mbkl") + "_")
    X = Tensor(graph, operator.inputs[0].full_name).cast(np.float32)
    tensors = [tensor for tensor, *_ in _outputs(scores_of(X, model.predictor_), model).values()]
    if isinstance(model, KernelRegressor):  # skl2onnx expects columns of predictions
        tensors = [tensors[0].reshape(-1, model.n_outputs_)]
    elif model.classes_.dtype == bool:  # skl2onnx treats booleans as integers
        tensors[0] = tensors[0].cast(np.int64)
    for tensor, variable in zip(tensors, operator.outputs, strict=True):
        graph.rename(tensor, variable.full_name)
    container.initializers.extend(graph.constants)
    container.nodes.extend(graph.nodes)
    # skl2onnx does not find the versions of operators that are added directly.
    container.node_domain_version_pair_sets |= {("", OPSET), (ML_DOMAIN, ML_OPSET)}


def _set_output_shape(operator) -> None:
    """Tell skl2onnx the shape of the predictions of a regressor."""
    types = require("skl2onnx.common.data_types", "onnx")
    n_rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = types.FloatTensorType([n_rows, operator.raw_operator.n_outputs_])


def _outputs(scores: Tensor, model: KernelPredictor) -> dict[str, tuple[Tensor, Any, tuple]]:
    """Return the outputs by name, each with its type and shape."""
    if isinstance(model, KernelRegressor):
        shape = (None, model.n_outputs_) if model.is_multi_output_ else (None,)
        scores = np.exp(scores) if model.loss == "poisson" else scores
        predictions = scores if model.is_multi_output_ else scores.reshape(-1)
        return {"prediction": (predictions.cast(np.float32), np.float32, shape)}
    assert isinstance(model, KernelClassifier)
    if model.classes_.size == 2:
        best = (scores > 0.0).cast(np.int64).reshape(-1)
        scores = (-scores).apply("Concat", scores, axis=1)
    else:
        best = scores.apply("ArgMax", axis=1, keepdims=0)
    second = "scores"
    if hasattr(model, "predict_proba"):
        second, scores = "probabilities", _probabilities(scores, model)
    labels = _labels(model)
    return {
        "label": (scores.graph.add("Gather", labels, best, axis=0), labels.dtype, (None,)),
        second: (scores.cast(np.float32), np.float32, (None, model.classes_.size)),
    }


def _labels(model: KernelClassifier) -> NDArray:
    classes = model.classes_
    if classes.dtype.kind in "UO":
        return classes.astype(object)
    return classes if classes.dtype == bool else classes.astype(np.int64)


def _probabilities(scores: Tensor, model: KernelClassifier) -> Tensor:
    """Return the probabilities of `predict_proba`; scores have a column for each class."""
    scaled = (scores + (model.offset_ or 0.0)) / model.temperature_
    if model.probability_rule == "softplus":
        separate = _softplus(scaled)
    elif model.probability_rule == "softmax" and model.classes_.size > 2:
        return scaled.apply("Softmax", axis=1)
    else:
        separate = scaled.apply("Sigmoid")
    return separate / separate.apply("ReduceSum", [1], keepdims=1)


def _softplus(values: Tensor) -> Tensor:
    """Return log(1 + exp(value)), which ONNX Runtime does not have in double precision."""
    tail = np.exp(-np.abs(values))
    result = values.apply("Relu") + np.log(tail + 1.0)
    # For very negative values log(1 + tail) loses digits, and is the tail.
    return (values < -15.0).apply("Where", tail, result)


def _features(graph: Graph, columns: list[Column]) -> tuple[Tensor, dict[str, tuple]]:
    """Return the features computed from the columns of a frame, and the columns as inputs."""
    features, inputs = [], {}
    for column in columns:
        inputs[column.name] = (object if column.is_text else np.float32, (None, 1))
        values = Tensor(graph, column.name)
        features.append(values if column.levels is None else _level_numbers(values, column))
    return graph.add("Concat", *features, axis=1), inputs


def _level_numbers(values: Tensor, column: Column) -> Tensor:
    """Return level numbers: NaN for missing values, the number of levels for new ones."""
    levels = column.levels or ()
    numbers = [float(place) for place in range(len(levels))]
    if column.is_text:
        table = {"keys_strings": ["", *levels], "values_floats": [np.nan, *numbers]}
    else:
        keys = [float(np.float32(level)) for level in levels]
        if len(set(keys)) < len(keys):
            raise ValueError(f"Levels of {column.name!r} are the same as float32; make them text.")
        table = {"keys_floats": keys, "values_floats": numbers}
    attributes: dict[str, Any] = {**table, "default_float": float(len(numbers))}
    encoded = values.apply("LabelEncoder", domain=ML_DOMAIN, **attributes)
    return encoded if column.is_text else np.isnan(values).apply("Where", values, encoded)


def onnx_inputs(model: KernelPredictor, X) -> dict[str, NDArray]:
    """Return the rows of a frame as the inputs of an exported model with categories.

    Parameters
    ----------
    model : MBKLClassifier, MBKLRegressor, or one of their searches
        Fitted on a frame with categories.
    X : dataframe of shape (n_rows, n_features)

    Returns
    -------
    inputs : dict from column to ndarray of shape (n_rows, 1)

    Examples
    --------
    >>> import onnxruntime
    >>> import pandas as pd
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.io import onnx_inputs, to_onnx
    >>> frame = pd.DataFrame({"town": ["Rome", "Bonn", None, "Rome"] * 5})
    >>> model = MBKLClassifier(random_state=0).fit(frame, ["hot", "cold", "cold", "hot"] * 5)
    >>> session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    >>> session.run(["label"], onnx_inputs(model, frame[:2]))[0].tolist()
    ['hot', 'cold']
    """
    columns = columns_of_model(model)
    if columns is None:
        raise ValueError("The model has no categories: its input is a float32 matrix X.")
    inputs = {}
    for column, of_frame in zip(columns, columns_of(X), strict=True):
        values = of_frame.numbers() if column.levels is None else of_frame.values
        if column.is_text:
            texts = ["" if value is None else value for value in of_frame.objects()]
            values = np.array(texts, object)
        inputs[column.name] = np.asarray(values).astype(object if column.is_text else np.float32)
    return {name: values[:, None] for name, values in inputs.items()}
