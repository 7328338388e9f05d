"""Export of classifiers and regressors to ONNX, alone or in a pipeline of scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.classifier import KernelClassifier, MBKLClassifier
from mbkl.extras import require
from mbkl.io.container import write_atomically
from mbkl.io.exports import Column, check_exportable, columns_of_model
from mbkl.io.onnx_scores import ML_DOMAIN, ML_OPSET, OPSET, Builder, add_scores, tensor_type
from mbkl.kernel_predictor import KernelPredictor
from mbkl.levels import columns_of
from mbkl.regressor import KernelRegressor, MBKLRegressor

_INPUT = "X"


def to_onnx(model: KernelPredictor, rules: Sequence[Mapping[str, Any]] | None = None):
    """Return a classifier or regressor as an ONNX model.

    Its input is a float32 tensor "X" of shape (n_rows, n_features), in which missing values are
    NaN. The outputs of a classifier are "label" and "probabilities" of shape (n_rows, n_classes),
    float32. One without probabilities has "scores" instead; with two classes these are minus the
    score and the score. The output of a regressor is "prediction" of shape (n_rows,) or
    (n_rows, n_outputs), float32. Tables are stored as float32 and added in double precision: labels
    are those of `predict` on the same float32 rows, unless two scores are as good as equal, and
    numbers agree to six digits.

    A model with categories has the columns of its frame as inputs, by their names and of shape
    (n_rows, 1): float32 for numbers and booleans, strings for text, where an empty one is
    missing. `onnx_inputs` makes them of a frame.

    Parameters
    ----------
    model : MBKLClassifier, MBKLRegressor, or one of their searches
    rules : list of dict or None, default=None
        Those of a `mbkl.tabular.TableEncoder`: the inputs are then the columns of its frame.

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
    columns = columns_of_model(model, rules)
    if columns is None:
        builder = Builder()
        X, inputs = _INPUT, {_INPUT: (np.float32, (None, model.n_features_in_))}
    else:
        builder = Builder(_prefix_unlike(columns))
        X, inputs = _add_columns(builder, columns)
    inside = _add_outputs(builder, add_scores(builder, X, model.predictor_), model)
    outputs = _outputs(model)
    for name, own in zip(outputs, inside, strict=True):
        if name in inputs:
            raise ValueError(f"A column has the name {name!r}, that of an output; rename it.")
        builder.rename(own, name)
    return builder.model(inputs, outputs)


def export_onnx(
    model: KernelPredictor,
    path: str | os.PathLike,
    rules: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Write a classifier or regressor to an ONNX file.

    Parameters
    ----------
    model : MBKLClassifier, MBKLRegressor, or one of their searches
    path : path
    rules : list of dict or None, default=None
        See `to_onnx`.
    """
    write_atomically(path, [to_onnx(model, rules).SerializeToString()])


def register_onnx_converter() -> None:
    """Teach skl2onnx to convert classifiers and regressors, also within a Pipeline.

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
    builder = Builder(scope.get_unique_variable_name("mbkl") + "_")
    X = builder.cast(operator.inputs[0].full_name, np.float32)
    inside = _add_outputs(builder, add_scores(builder, X, model.predictor_), model)
    if isinstance(model, KernelRegressor):  # whose predictions are columns in skl2onnx
        inside = (builder.reshape(inside[0], -1, model.n_outputs_),)
    elif model.classes_.dtype == bool:  # which skl2onnx takes for integers
        inside = builder.cast(inside[0], np.int64), inside[1]
    for own, variable in zip(inside, operator.outputs, strict=True):
        builder.rename(own, variable.full_name)
    for name, constant in builder.constants.items():
        content = constant.ravel().tolist()
        container.add_initializer(name, tensor_type(constant.dtype), constant.shape, content)
    for one in builder.operators:
        container.add_node(
            one.kind, one.inputs, [one.output], one.domain, name=one.output, **one.attributes
        )
    # skl2onnx looks for the versions that it has to name at the outermost operators alone.
    container.node_domain_version_pair_sets |= {("", OPSET), (ML_DOMAIN, ML_OPSET)}


def _set_output_shape(operator) -> None:
    """Tell skl2onnx of which shape the predictions of a regressor are."""
    types = require("skl2onnx.common.data_types", "onnx")
    n_rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = types.FloatTensorType([n_rows, operator.raw_operator.n_outputs_])


def _outputs(model: KernelPredictor) -> dict[str, tuple]:
    """Return the outputs, by name."""
    if isinstance(model, KernelRegressor):
        shape = (None, model.n_outputs_) if model.is_multi_output_ else (None,)
        return {"prediction": (np.float32, shape)}
    assert isinstance(model, KernelClassifier)
    second = "probabilities" if hasattr(model, "predict_proba") else "scores"
    return {
        "label": (_labels(model).dtype, (None,)),
        second: (np.float32, (None, model.classes_.size)),
    }


def _labels(model: KernelClassifier) -> NDArray:
    """Return the class labels as text, booleans or, like skl2onnx, int64."""
    classes = model.classes_
    if classes.dtype.kind in "UO":
        return classes.astype(object)
    return classes if classes.dtype == bool else classes.astype(np.int64)


def _add_outputs(builder: Builder, scores: str, model: KernelPredictor) -> tuple[str, ...]:
    """Add what `_outputs` names."""
    if isinstance(model, KernelRegressor):
        return (_add_prediction(builder, scores, model),)
    assert isinstance(model, KernelClassifier)
    return _add_label_and_values(builder, scores, model)


def _add_prediction(builder: Builder, scores: str, model: KernelRegressor) -> str:
    """Add what `predict` returns, as float32."""
    if model.loss == "poisson":
        scores = builder.add("Exp", scores)
    if not model.is_multi_output_:
        scores = builder.reshape(scores, -1)
    return builder.cast(scores, np.float32)


def _add_label_and_values(
    builder: Builder, scores: str, model: KernelClassifier
) -> tuple[str, str]:
    """Add labels, and probabilities or scores of all classes as float32."""
    if model.classes_.size == 2:
        second = builder.add("Greater", scores, builder.constant(np.float64(0.0)))
        best = builder.reshape(builder.cast(second, np.int64), -1)
        scores = builder.add("Concat", builder.add("Neg", scores), scores, axis=1)
    else:
        best = builder.add("ArgMax", scores, axis=1, keepdims=0)
    label = builder.add("Gather", builder.constant(_labels(model)), best, axis=0)
    if hasattr(model, "predict_proba"):
        scores = _add_probabilities(builder, scores, model)
    return label, builder.cast(scores, np.float32)


def _add_probabilities(builder: Builder, scores: str, model: KernelClassifier) -> str:
    """Add what `predict_proba` returns; `scores` has a column for each class."""
    if model.offset_ is not None:
        scores = builder.add("Add", scores, builder.constant(np.float64(model.offset_)))
    scaled = builder.add("Div", scores, builder.constant(np.float64(model.temperature_)))
    if model.probability_rule == "softplus":
        separate = _add_softplus(builder, scaled)
    elif model.classes_.size == 2:
        return builder.add("Sigmoid", scaled)
    elif model.probability_rule == "softmax":
        return builder.add("Softmax", scaled, axis=1)
    else:
        separate = builder.add("Sigmoid", scaled)
    total = builder.add("ReduceSum", separate, builder.constant(np.array([1])), keepdims=1)
    return builder.add("Div", separate, total)


def _add_softplus(builder: Builder, values: str) -> str:
    """Add log(1 + exp(value)), which ONNX Runtime does not have in double precision."""
    tail = builder.add("Exp", builder.add("Neg", builder.add("Abs", values)))
    one_more = builder.add("Add", tail, builder.constant(np.float64(1.0)))
    whole = builder.add("Add", builder.add("Relu", values), builder.add("Log", one_more))
    # Where the tail is lost beside the one, it is the result.
    is_low = builder.add("Less", values, builder.constant(np.float64(-15.0)))
    return builder.add("Where", is_low, tail, whole)


def _prefix_unlike(columns: list[Column]) -> str:
    """Return a beginning for names inside the graph that no column has."""
    prefix = "mbkl_"
    while any(column.name.startswith(prefix) for column in columns):
        prefix = f"_{prefix}"
    return prefix


def _add_columns(builder: Builder, columns: list[Column]) -> tuple[str, dict[str, tuple]]:
    """Add the encoding of a frame; return the features and the inputs."""
    features, inputs = [], {}
    for column in columns:
        inputs[column.name] = (np.dtype(object if column.is_text else np.float32), (None, 1))
        is_number = column.levels is None
        features.append(column.name if is_number else _add_level_numbers(builder, column))
    return builder.add("Concat", *features, axis=1), inputs


def _add_level_numbers(builder: Builder, column: Column) -> str:
    """Add the number of each level: NaN where it is missing, one beyond the last where new."""
    levels = column.levels or ()
    numbers = [float(place) for place in range(len(levels))]
    if column.is_text:
        known = {"keys_strings": ["", *levels], "values_floats": [np.nan, *numbers]}
    else:
        keys = [float(np.float32(level)) for level in levels]
        if len(set(keys)) < len(keys):
            raise ValueError(f"Levels of {column.name!r} are the same as float32; make them text.")
        known = {"keys_floats": keys, "values_floats": numbers}
    new = float(len(numbers))
    attributes: dict[str, Any] = {**known, "default_float": new}
    found = builder.add("LabelEncoder", column.name, domain=ML_DOMAIN, **attributes)
    if column.is_text:
        return found
    return builder.add("Where", builder.add("IsNaN", column.name), column.name, found)


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
    columns = columns_of_model(model, None)
    if columns is None:
        raise ValueError("The model has no categories: its input is a float32 matrix X.")
    inputs = {}
    for column, own in zip(columns, columns_of(X), strict=True):
        values = own.numbers() if column.levels is None else own.values
        if column.is_text:
            values = np.array(["" if value is None else value for value in own.objects()], object)
        inputs[column.name] = np.asarray(values).astype(object if column.is_text else np.float32)
    return {name: values[:, None] for name, values in inputs.items()}
