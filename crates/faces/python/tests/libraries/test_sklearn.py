"""Estimators and metrics of scikit-learn that take arrays of any namespace."""

from __future__ import annotations

import os

import numpy as np
import pytest

# scikit-learn asks for it before it passes on arrays of others.
os.environ["SCIPY_ARRAY_API"] = "1"

sklearn = pytest.importorskip("sklearn", minversion="1.9")
pytestmark = pytest.mark.filterwarnings("ignore")

from sklearn import metrics, preprocessing  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: E402
from sklearn.kernel_approximation import Nystroem  # noqa: E402
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, RidgeCV  # noqa: E402
from sklearn.metrics import pairwise  # noqa: E402
from sklearn.mixture import GaussianMixture  # noqa: E402
from sklearn.model_selection import cross_val_predict, train_test_split  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402

from .compare import both  # noqa: E402

_rng = np.random.default_rng(0)
X = _rng.standard_normal((60, 5))
Y = X @ _rng.standard_normal(5) + 0.1 * _rng.standard_normal(60)
OTHER = Y[::-1].copy()
TWO = (X[:, 0] + X[:, 1] > 0).astype(np.int64)
THREE = _rng.integers(0, 3, 60)
SHARES = np.abs(X[:, 0]) / 10

ESTIMATORS = {
    # The signs of components are open.
    "PCA, full": (lambda x: abs(PCA(3, svd_solver="full").fit_transform(x)), X),
    "PCA, covariance": (
        lambda x: PCA(3, svd_solver="covariance_eigh").fit(x).explained_variance_, X,
    ),
    "PCA, back": (
        lambda x: (lambda pca: pca.inverse_transform(pca.fit_transform(x)))(PCA(3, svd_solver="full")), X,
    ),
    "LinearDiscriminantAnalysis": (
        lambda x, y: LinearDiscriminantAnalysis(solver="svd").fit(x, y).predict_proba(x), X, TWO,
    ),
    "Ridge": (lambda x, y: Ridge(solver="svd").fit(x, y).predict(x), X, Y),
    "RidgeCV": (lambda x, y: RidgeCV().fit(x, y).predict(x), X, Y),
    "RidgeClassifier": (lambda x, y: RidgeClassifier(solver="svd").fit(x, y).predict(x), X, TWO),
    "LogisticRegression": (
        lambda x, y: LogisticRegression(solver="lbfgs").fit(x, y).predict_proba(x), X, TWO,
    ),
    "GaussianMixture": (
        lambda x: GaussianMixture(2, init_params="random", random_state=0).fit(x).means_, X,
    ),
    # Written through slices of views, component by component.
    **{
        f"GaussianMixture, {kind}": (
            lambda x, kind=kind: (
                lambda made: (made.means_, made.covariances_, made.weights_, made.precisions_cholesky_)
            )(GaussianMixture(3, covariance_type=kind, max_iter=5, init_params="random_from_data", random_state=0).fit(x)),
            X,
        )
        for kind in ("full", "tied", "diag", "spherical")
    },
    "GaussianNB": (lambda x, y: GaussianNB().fit(x, y).predict_proba(x), X, TWO),
    "Nystroem": (lambda x: Nystroem(n_components=6, random_state=0).fit_transform(x), X),
    "train_test_split": (lambda x: train_test_split(x, random_state=0), X),
    "cross_val_predict": (lambda x, y: cross_val_predict(Ridge(solver="svd"), x, y), X, Y),
    "StandardScaler": (lambda x: preprocessing.StandardScaler().fit_transform(x), X),
    "MinMaxScaler": (lambda x: preprocessing.MinMaxScaler().fit_transform(x), X),
    "MaxAbsScaler": (lambda x: preprocessing.MaxAbsScaler().fit_transform(x), X),
    "Normalizer": (lambda x: preprocessing.Normalizer().fit_transform(x), X),
    "Binarizer": (lambda x: preprocessing.Binarizer().fit_transform(x), X),
    "KernelCenterer": (lambda x: preprocessing.KernelCenterer().fit_transform(x @ x.T), X),
    "PolynomialFeatures": (lambda x: preprocessing.PolynomialFeatures(2).fit_transform(x), X),
    "LabelEncoder": (lambda y: preprocessing.LabelEncoder().fit_transform(y), THREE),
    "LabelBinarizer": (lambda y: preprocessing.LabelBinarizer().fit_transform(y), THREE),
}  # fmt: skip

METRICS = {
    "accuracy_score": (metrics.accuracy_score, TWO, THREE),
    "f1_score": (lambda a, b: metrics.f1_score(a, b, average="macro"), THREE, THREE[::-1].copy()),
    "precision_score": (
        lambda a, b: metrics.precision_score(a, b, average="macro"), THREE, THREE[::-1].copy(),
    ),
    "confusion_matrix": (metrics.confusion_matrix, THREE, THREE[::-1].copy()),
    "zero_one_loss": (metrics.zero_one_loss, TWO, THREE),
    "hamming_loss": (metrics.hamming_loss, TWO, THREE),
    "log_loss": (metrics.log_loss, TWO, SHARES),
    "brier_score_loss": (metrics.brier_score_loss, TWO, SHARES),
    "mean_squared_error": (metrics.mean_squared_error, Y, OTHER),
    "mean_absolute_error": (metrics.mean_absolute_error, Y, OTHER),
    "median_absolute_error": (metrics.median_absolute_error, Y, OTHER),
    "mean_pinball_loss": (metrics.mean_pinball_loss, Y, OTHER),
    "max_error": (metrics.max_error, Y, OTHER),
    "r2_score": (metrics.r2_score, Y, OTHER),
    "explained_variance_score": (metrics.explained_variance_score, Y, OTHER),
    "d2_tweedie_score": (metrics.d2_tweedie_score, Y, OTHER),
    "euclidean_distances": (pairwise.euclidean_distances, X),
    "cosine_distances": (pairwise.cosine_distances, X),
    "cosine_similarity": (pairwise.cosine_similarity, X),
    "rbf_kernel": (pairwise.rbf_kernel, X),
    "linear_kernel": (pairwise.linear_kernel, X),
    "polynomial_kernel": (pairwise.polynomial_kernel, X),
    "sigmoid_kernel": (pairwise.sigmoid_kernel, X),
    "additive_chi2_kernel": (pairwise.additive_chi2_kernel, np.abs(X)),
}  # fmt: skip

#: Found by steps that end where it is good enough.
LOOSE = {"LogisticRegression": 1e-3, "GaussianMixture": 1e-3, "Nystroem": 1e-4}
CASES = ESTIMATORS | METRICS


@pytest.mark.parametrize("name", list(CASES))
def test_sklearn(name: str) -> None:
    function, *arrays = CASES[name]
    with sklearn.config_context(array_api_dispatch=True):
        both(function, *arrays, tolerance=LOOSE.get(name, 1e-6))
