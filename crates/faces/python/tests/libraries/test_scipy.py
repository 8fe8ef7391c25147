"""Functions of SciPy that take arrays of any namespace."""

from __future__ import annotations

import os

import numpy as np
import pytest

# SciPy reads it when it is imported.
os.environ["SCIPY_ARRAY_API"] = "1"

import loopwright as lw  # noqa: E402

scipy = pytest.importorskip("scipy", minversion="1.17")
pytestmark = pytest.mark.filterwarnings("ignore")

import scipy.cluster.hierarchy  # noqa: E402
import scipy.cluster.vq  # noqa: E402
import scipy.constants  # noqa: E402
import scipy.differentiate  # noqa: E402
import scipy.fft  # noqa: E402
import scipy.integrate  # noqa: E402
import scipy.interpolate  # noqa: E402
import scipy.ndimage  # noqa: E402
import scipy.optimize  # noqa: E402
import scipy.optimize.elementwise  # noqa: E402
import scipy.signal  # noqa: E402
import scipy.spatial.transform  # noqa: E402
import scipy.special  # noqa: E402
import scipy.stats  # noqa: E402

from .compare import both, same  # noqa: E402

_rng = np.random.default_rng(0)
TABLE = _rng.standard_normal((20, 4))
POSITIVE = np.abs(_rng.standard_normal(12)) + 0.1
LINE = _rng.standard_normal(12)
COUNTS = np.round(POSITIVE * 10) + 1
SHARES = POSITIVE / 10
ZERO, TWO = np.asarray([0.0, 1.0]), np.asarray([2.0, 3.0])


def fields(result, *names: str) -> tuple:
    return tuple(getattr(result, name) for name in names)


def test_of(function: str) -> tuple:
    """Statistic and p-value of a test of `scipy.stats`."""
    return lambda *xs: fields(getattr(scipy.stats, function)(*xs), "statistic", "pvalue")


test_of.__test__ = False

CASES = {
    "special.logsumexp": (scipy.special.logsumexp, TABLE),
    "special.softmax": (lambda x: scipy.special.softmax(x, axis=1), TABLE),
    "special.log_softmax": (lambda x: scipy.special.log_softmax(x, axis=1), TABLE),
    "special.entr": (scipy.special.entr, POSITIVE),
    "special.rel_entr": (scipy.special.rel_entr, POSITIVE, SHARES),
    "special.xlogy": (scipy.special.xlogy, POSITIVE, POSITIVE),
    "special.expit": (scipy.special.expit, LINE),
    "special.logit": (scipy.special.logit, SHARES),
    "special.gammaln": (scipy.special.gammaln, POSITIVE),
    "special.erf": (scipy.special.erf, LINE),
    "special.chdtr": (scipy.special.chdtr, POSITIVE, POSITIVE),
    "stats.zscore": (scipy.stats.zscore, TABLE),
    "stats.gmean": (scipy.stats.gmean, POSITIVE),
    "stats.hmean": (scipy.stats.hmean, POSITIVE),
    "stats.pmean": (lambda x: scipy.stats.pmean(x, 3), POSITIVE),
    "stats.moment": (lambda x: scipy.stats.moment(x, 3), TABLE),
    "stats.skew": (scipy.stats.skew, TABLE),
    "stats.kurtosis": (scipy.stats.kurtosis, TABLE),
    "stats.variation": (scipy.stats.variation, POSITIVE),
    "stats.describe": (
        lambda x: fields(scipy.stats.describe(x), "mean", "variance", "skewness", "kurtosis"), TABLE,
    ),
    "stats.ttest_1samp": (lambda x: test_of("ttest_1samp")(x, 0.1), TABLE),
    "stats.ttest_ind": (test_of("ttest_ind"), TABLE, TABLE + 0.2),
    "stats.pearsonr": (test_of("pearsonr"), POSITIVE, LINE),
    "stats.entropy": (scipy.stats.entropy, POSITIVE),
    "stats.chisquare": (test_of("chisquare"), COUNTS),
    "stats.power_divergence": (test_of("power_divergence"), COUNTS),
    "stats.bartlett": (test_of("bartlett"), POSITIVE, LINE),
    "stats.jarque_bera": (test_of("jarque_bera"), LINE),
    "stats.skewtest": (test_of("skewtest"), TABLE),
    "stats.kstat": (lambda x: scipy.stats.kstat(x, 3), LINE),
    "stats.sem": (scipy.stats.sem, TABLE),
    "stats.tmean": (lambda x: scipy.stats.tmean(x, (-1, 1)), LINE),
    "stats.circmean": (scipy.stats.circmean, POSITIVE),
    "stats.directional_stats": (
        lambda x: scipy.stats.directional_stats(x).mean_direction, TABLE,
    ),
    "stats.combine_pvalues": (test_of("combine_pvalues"), SHARES),
    "stats.rankdata": (scipy.stats.rankdata, LINE),
    "stats.wilcoxon": (test_of("wilcoxon"), LINE),
    "stats.mannwhitneyu": (test_of("mannwhitneyu"), POSITIVE, LINE),
    "stats.quantile": (lambda x: scipy.stats.quantile(x, 0.3), LINE),
    "stats.iqr": (scipy.stats.iqr, LINE),
    "signal.convolve": (scipy.signal.convolve, POSITIVE, LINE),
    "signal.fftconvolve": (scipy.signal.fftconvolve, POSITIVE, LINE),
    # Parts are added to each other in slices of the result.
    "signal.oaconvolve": (lambda x, y: scipy.signal.oaconvolve(x, y), np.sin(np.arange(200.0)), LINE),
    "signal.oaconvolve, two axes": (
        lambda x, y: scipy.signal.oaconvolve(x, y, mode="same", axes=(0, 1)),
        np.sin(np.arange(1200.0)).reshape(40, 30), TABLE,
    ),
    "signal.correlate": (scipy.signal.correlate, POSITIVE, LINE),
    "signal.detrend": (scipy.signal.detrend, LINE),
    "signal.hilbert": (scipy.signal.hilbert, LINE),
    "signal.zpk2tf": (lambda z, p: scipy.signal.zpk2tf(z, p, 1.0), POSITIVE[:3], POSITIVE[3:6]),
    "signal.savgol_filter": (lambda x: scipy.signal.savgol_filter(x, 5, 2), LINE),
    "cluster.whiten": (scipy.cluster.vq.whiten, TABLE),
    "cluster.vq": (scipy.cluster.vq.vq, TABLE, TABLE[:3]),
    "cluster.kmeans": (lambda x: scipy.cluster.vq.kmeans(x, x[:2, :])[0], TABLE),
    "cluster.linkage": (scipy.cluster.hierarchy.linkage, TABLE),
    "fft.fft": (scipy.fft.fft, LINE),
    "fft.rfftn": (scipy.fft.rfftn, TABLE),
    "fft.dct": (scipy.fft.dct, LINE),
    "fft.fht": (lambda x: scipy.fft.fht(x, 0.1, 0.0), LINE),
    "integrate.trapezoid": (scipy.integrate.trapezoid, LINE),
    "integrate.cumulative_trapezoid": (scipy.integrate.cumulative_trapezoid, LINE),
    "integrate.simpson": (scipy.integrate.simpson, LINE),
    "integrate.cubature": (
        lambda a, b: scipy.integrate.cubature(lambda t: t[..., 0] ** 2, a, b).estimate, ZERO[:1], TWO[:1],
    ),
    "integrate.tanhsinh": (
        lambda a, b: scipy.integrate.tanhsinh(lambda t: t**2, a, b).integral, ZERO, TWO,
    ),
    "differentiate.derivative": (
        lambda x: scipy.differentiate.derivative(lambda t: t**3, x).df, POSITIVE,
    ),
    "differentiate.jacobian": (
        lambda x: scipy.differentiate.jacobian(lambda t: t**3, x).df, POSITIVE[:3],
    ),
    "optimize.find_root": (
        lambda a, b: scipy.optimize.elementwise.find_root(lambda t: t**2 - 2, (a, b)).x, ZERO, TWO,
    ),
    "optimize.find_minimum": (
        lambda a, b: scipy.optimize.elementwise.find_minimum(
            lambda t: (t - 1.4) ** 2, (a, a + 0.5, b)
        ).x, ZERO, TWO,
    ),
    "optimize.rosen": (scipy.optimize.rosen, POSITIVE),
    "optimize.rosen_der": (scipy.optimize.rosen_der, POSITIVE),
    "ndimage.gaussian_filter": (lambda x: scipy.ndimage.gaussian_filter(x, 1.0), TABLE),
    "ndimage.sobel": (scipy.ndimage.sobel, TABLE),
    "interpolate.BSpline": (
        lambda x, y: scipy.interpolate.make_interp_spline(x, y)(x), np.arange(12.0), LINE,
    ),
    "spatial.Rotation": (
        lambda x: scipy.spatial.transform.Rotation.from_rotvec(x).as_matrix(), TABLE[:, :3],
    ),
    "constants.convert_temperature": (
        lambda x: scipy.constants.convert_temperature(x, "Celsius", "Kelvin"), POSITIVE,
    ),
}  # fmt: skip

#: Found by steps that end where rounding says so.
LOOSE = {"differentiate.jacobian": 1e-5, "optimize.find_minimum": 1e-5}


@pytest.mark.parametrize("name", list(CASES))
def test_scipy(name: str) -> None:
    function, *arrays = CASES[name]
    both(function, *arrays, tolerance=LOOSE.get(name, 1e-7))


def test_functions_that_take_a_namespace() -> None:
    same(scipy.signal.windows.hann(8, xp=lw), scipy.signal.windows.hann(8), 1e-6)
    same(scipy.fft.fftfreq(8, xp=lw), scipy.fft.fftfreq(8), 1e-6)
