"""scikit-learn models as people make them: with strings, missing values, pipelines, and boosted trees inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import (
    calibration,
    cluster,
    compose,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_selection,
    gaussian_process,
    impute,
    kernel_approximation,
    kernel_ridge,
    linear_model,
    manifold,
    mixture,
    model_selection,
    multiclass,
    multioutput,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)
from sklearn.feature_extraction import text

from benchmarks.conversions import sklearn_models as models
from benchmarks.conversions.case import Case
from benchmarks.conversions.sklearn_models import (
    Numbers,
    animals,
    binary,
    bought,
    hist,
    library,
    pair,
    scaled,
    table,
    value,
)
from sardonyx.conversion.convert import Converted
from sardonyx.conversion.request import Example, Request

__all__ = ["CASES"]


def case(
    name: str,
    make: Callable[[], Any],
    target: Callable[[Any], Numbers] = binary,
    rows: Callable[[], Any] = models.numbers,
    *,
    refusal: str = "",
    check: Callable[[Converted], None] | None = None,
) -> Case:
    """A model that is fitted on all rows and converted with the first forty."""

    def request() -> Request:
        x = rows()
        model = make()
        model.fit(x, target(x))
        return Request(model, (Example((x[:40],)),))

    return Case(name, request, check, refusal)


def gives(*wanted: str) -> Callable[[Converted], None]:
    """The result's outputs have these names."""

    def check(converted: Converted) -> None:
        found = tuple(value.name for value in converted.model.graph.outputs)
        assert found == wanted, found

    return check


def takes_columns(converted: Converted) -> None:
    found = {value.name: value.dtype.name for value in converted.model.graph.inputs if value.dtype}
    assert list(found) == ["age", "income", "city", "plan", "active"], found
    assert (found["age"], found["city"], found["active"]) == ("INT64", "STRING", "BOOL"), found


def untrained() -> Request:
    return Request(linear_model.LogisticRegression(), (Example((models.numbers()[:10],)),))


def names_and_opset() -> Request:
    x = models.single()
    model = linear_model.LogisticRegression().fit(x, binary(x))
    return Request(
        model,
        (Example((x[:40],)), Example((x[:7],))),
        input_names=("rows",),
        output_names=("klass", "odds"),
        opset=17,
    )


def has_names_and_opset(converted: Converted) -> None:
    graph = converted.model.graph
    assert [value.name for value in graph.inputs] == ["rows"]
    assert [value.name for value in graph.outputs] == ["klass", "odds"]
    assert graph.opset_imports[""] == 17
    assert str(graph.inputs[0].shape) == "[batch,5]"


LINEAR = (
    case("LogisticRegression, float32", linear_model.LogisticRegression, rows=models.single,
         check=gives("label", "probabilities")),
    case("LogisticRegression, text labels, float64", linear_model.LogisticRegression, animals),
    case("LinearRegression", linear_model.LinearRegression, value, check=gives("prediction")),
    case("Ridge, two targets", linear_model.Ridge, pair),
    case("TweedieRegressor, log link", lambda: linear_model.TweedieRegressor(power=1.5),
         lambda x: np.abs(value(x)) + 0.1),
    case("SGDClassifier, modified Huber",
         lambda: linear_model.SGDClassifier(loss="modified_huber", random_state=0), animals),
    case("LinearSVC", svm.LinearSVC, animals, check=gives("label", "scores")),
    case("RidgeClassifier, float32", linear_model.RidgeClassifier, rows=models.single),
    case("LinearDiscriminantAnalysis", discriminant_analysis.LinearDiscriminantAnalysis, animals),
    case("QuadraticDiscriminantAnalysis",
         discriminant_analysis.QuadraticDiscriminantAnalysis, animals),
    Case("names, opset 17 and two examples", names_and_opset, has_names_and_opset),
)  # fmt: skip

TREES = (
    case("DecisionTreeClassifier", tree.DecisionTreeClassifier, animals),
    case("DecisionTreeRegressor, missing values", tree.DecisionTreeRegressor,
         lambda x: value(np.nan_to_num(x)), models.with_gaps),
    case("RandomForestClassifier, float32",
         lambda: ensemble.RandomForestClassifier(20, random_state=0), animals, models.single),
    case("RandomForestClassifier, missing values",
         lambda: ensemble.RandomForestClassifier(20, max_depth=5, random_state=0),
         lambda x: binary(np.nan_to_num(x)), models.with_gaps_single),
    case("RandomForestClassifier, several outputs",
         lambda: ensemble.RandomForestClassifier(10, random_state=0), pair,
         check=gives("label", "probabilities_0", "probabilities_1")),
    case("RandomForestRegressor", lambda: ensemble.RandomForestRegressor(20, random_state=0), value),
    case("ExtraTreesClassifier", lambda: ensemble.ExtraTreesClassifier(20, random_state=0), animals),
    case("GradientBoostingClassifier, three classes",
         lambda: ensemble.GradientBoostingClassifier(n_estimators=15), animals),
    case("GradientBoostingRegressor, float32",
         lambda: ensemble.GradientBoostingRegressor(n_estimators=30), value, models.single),
    case("HistGradientBoostingClassifier, missing values", hist,
         lambda x: binary(np.nan_to_num(x)), models.with_gaps),
    case("HistGradientBoostingClassifier, categories by place, unknown and missing",
         lambda: hist(categorical_features=[1, 3]), models.by_code, models.codes),
    case("HistGradientBoostingClassifier, categories of a DataFrame",
         lambda: hist(categorical_features="from_dtype"), bought, models.categories),
    case("HistGradientBoostingRegressor, Poisson, float32",
         lambda: ensemble.HistGradientBoostingRegressor(loss="poisson", max_iter=20),
         lambda x: np.abs(value(x)), models.single),
    case("AdaBoostClassifier", lambda: ensemble.AdaBoostClassifier(n_estimators=10), animals),
    case("AdaBoostRegressor",
         lambda: ensemble.AdaBoostRegressor(n_estimators=10, random_state=0), value),
    case("BaggingClassifier on some columns",
         lambda: ensemble.BaggingClassifier(n_estimators=6, max_features=0.6, random_state=0),
         animals),
    case("IsolationForest",
         lambda: ensemble.IsolationForest(n_estimators=20, contamination=0.1, random_state=0),
         check=gives("label", "scores")),
    case("RandomTreesEmbedding", lambda: ensemble.RandomTreesEmbedding(5, random_state=0)),
)  # fmt: skip

OTHERS = (
    case("GaussianNB", naive_bayes.GaussianNB, animals),
    case("BernoulliNB and MultinomialNB in a vote",
         lambda: ensemble.VotingClassifier(
             [("b", naive_bayes.BernoulliNB(binarize=0.5)), ("m", naive_bayes.MultinomialNB())],
             voting="soft", weights=[2, 1]), animals, models.positive),
    case("KNeighborsClassifier, by distance",
         lambda: neighbors.KNeighborsClassifier(weights="distance"), animals),
    case("KNeighborsRegressor, Manhattan, float32",
         lambda: neighbors.KNeighborsRegressor(metric="manhattan"), value, models.single),
    case("SVC, three classes, float32", svm.SVC, animals, models.single),
    case("SVR, polynomial kernel", lambda: svm.SVR(kernel="poly"), value),
    case("OneClassSVM", lambda: svm.OneClassSVM(nu=0.2)),
    case("LocalOutlierFactor, novelty", lambda: neighbors.LocalOutlierFactor(novelty=True)),
    case("GaussianProcessRegressor",
         lambda: gaussian_process.GaussianProcessRegressor(alpha=0.1, normalize_y=True), value),
    case("GaussianProcessClassifier", gaussian_process.GaussianProcessClassifier, binary),
    case("KernelRidge", lambda: kernel_ridge.KernelRidge(kernel="rbf"), value),
    case("MLPClassifier, float32",
         lambda: neural_network.MLPClassifier(hidden_layer_sizes=(8,), max_iter=50, random_state=0), animals,
         models.single),
    case("MLPRegressor, tanh",
         lambda: neural_network.MLPRegressor(hidden_layer_sizes=(8,), activation="tanh", max_iter=50, random_state=0), value),
    case("GaussianMixture", lambda: mixture.GaussianMixture(3, random_state=0),
         check=gives("label", "probabilities")),
    case("KMeans", lambda: cluster.KMeans(4, random_state=0), check=gives("label", "distances")),
    case("CalibratedClassifierCV, isotonic",
         lambda: calibration.CalibratedClassifierCV(svm.LinearSVC(), method="isotonic", cv=2),
         animals),
    case("TunedThresholdClassifierCV",
         lambda: model_selection.TunedThresholdClassifierCV(linear_model.LogisticRegression())),
    case("StackingClassifier with its inputs",
         lambda: ensemble.StackingClassifier(
             [("t", tree.DecisionTreeClassifier(max_depth=3)), ("b", naive_bayes.GaussianNB())],
             passthrough=True, cv=2), animals),
    case("OneVsOneClassifier", lambda: multiclass.OneVsOneClassifier(svm.LinearSVC()), animals),
    case("ClassifierChain",
         lambda: multioutput.ClassifierChain(linear_model.LogisticRegression()), pair),
    case("TransformedTargetRegressor, log1p",
         lambda: compose.TransformedTargetRegressor(
             linear_model.Ridge(), func=np.log1p, inverse_func=np.expm1),
         lambda x: np.abs(value(x))),
)  # fmt: skip

TABLES = (
    case("DataFrame: scaled numbers, one-hot texts, LogisticRegression",
         lambda: pipeline.make_pipeline(table(), linear_model.LogisticRegression()), bought,
         models.people, check=takes_columns),
    case("DataFrame with missing numbers and texts, forest",
         lambda: pipeline.make_pipeline(
             table(remainder="passthrough"), ensemble.RandomForestClassifier(10, random_state=0)),
         bought, models.people_missing),
    case("DataFrame: OrdinalEncoder, unknown texts, HistGradientBoosting",
         lambda: pipeline.make_pipeline(
             compose.make_column_transformer(
                 (preprocessing.OrdinalEncoder(
                     handle_unknown="use_encoded_value", unknown_value=-1), ["city", "plan"]),
                 remainder="passthrough"), hist()), bought, models.people),
    case("DataFrame: TargetEncoder and bins",
         lambda: pipeline.make_pipeline(
             compose.make_column_transformer(
                 (preprocessing.TargetEncoder(), ["city", "plan"]),
                 (preprocessing.KBinsDiscretizer(4), ["age", "income"])), linear_model.Ridge()),
         models.plans, models.people),
    case("DataFrame: infrequent categories, drop, GridSearchCV",
         lambda: model_selection.GridSearchCV(
             pipeline.Pipeline([
                 ("hot", compose.make_column_transformer(
                     (preprocessing.OneHotEncoder(
                         drop="first", min_frequency=60, handle_unknown="infrequent_if_exist"),
                      ["city", "plan"]), ("passthrough", ["age"]))),
                 ("last", linear_model.LogisticRegression(max_iter=500))]),
             {"last__C": [0.1, 1.0]}, cv=2), bought, models.people),
    case("DataFrame of texts filled by the most frequent",
         lambda: pipeline.make_pipeline(
             compose.make_column_transformer(
                 (pipeline.make_pipeline(
                     impute.SimpleImputer(strategy="most_frequent"),
                     preprocessing.OneHotEncoder(sparse_output=False)), ["city"])),
             tree.DecisionTreeClassifier()), bought, models.people_missing),
    case("DataFrame: pandas output between the steps",
         lambda: pipeline.make_pipeline(
             compose.make_column_transformer(
                 (preprocessing.StandardScaler(), ["age", "income"]),
                 (preprocessing.OrdinalEncoder(), ["plan"]),
                 verbose_feature_names_out=False).set_output(transform="pandas"),
             compose.make_column_transformer(
                 (preprocessing.PolynomialFeatures(2), ["income", "age"]), ("passthrough", ["plan"])),
             linear_model.Ridge()), models.plans, models.people),
    case("SplineTransformer and PolynomialFeatures in a FeatureUnion",
         lambda: pipeline.make_pipeline(
             pipeline.make_union(preprocessing.SplineTransformer(extrapolation="linear"),
                                 preprocessing.PolynomialFeatures(2)), linear_model.Ridge()), value),
    case("QuantileTransformer to normal, PCA, KNNImputer before",
         lambda: pipeline.make_pipeline(
             impute.KNNImputer(), preprocessing.QuantileTransformer(
                 n_quantiles=50, output_distribution="normal"), decomposition.PCA(3)),
         lambda x: binary(np.nan_to_num(x)), models.with_gaps, check=gives("transformed")),
    case("PowerTransformer, SelectKBest, SVC, float32",
         lambda: pipeline.make_pipeline(
             preprocessing.PowerTransformer(), feature_selection.SelectKBest(k=3), svm.SVC()),
         animals, models.single),
    case("Nystroem, TruncatedSVD, NearestCentroid",
         lambda: pipeline.make_pipeline(
             kernel_approximation.Nystroem(n_components=20, random_state=0),
             decomposition.TruncatedSVD(5, random_state=0), neighbors.NearestCentroid()), animals),
    case("TfidfVectorizer, word pairs, LogisticRegression",
         lambda: pipeline.make_pipeline(
             text.TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
             linear_model.LogisticRegression()), models.liked, models.reviews),
    case("CountVectorizer, stop words, MultinomialNB",
         lambda: pipeline.make_pipeline(
             text.CountVectorizer(stop_words="english"), naive_bayes.MultinomialNB()),
         models.liked, models.reviews),
)  # fmt: skip

BOOSTED = (
    case("scaler and XGBClassifier",
         lambda: scaled(library("xgboost", "XGBClassifier", n_estimators=15)), binary),
    case("scaler and LGBMClassifier, text labels",
         lambda: scaled(library("lightgbm", "LGBMClassifier", n_estimators=15, verbose=-1)), animals),
    case("scaler and CatBoostRegressor, float32",
         lambda: scaled(library("catboost", "CatBoostRegressor", n_estimators=15, verbose=0,
                                allow_writing_files=False)), value, models.single),
    case("XGBRegressor and Ridge stacked",
         lambda: ensemble.StackingRegressor(
             [("x", library("xgboost", "XGBRegressor", n_estimators=10)),
              ("r", linear_model.Ridge())], cv=2), value, models.single),
)  # fmt: skip

REFUSED = (
    Case("not fitted", untrained, refusal="Fit it first"),
    case("HashingVectorizer", lambda: text.HashingVectorizer(n_features=16), models.liked,
         models.reviews, refusal="no hash function"),
    case("TfidfVectorizer of characters", lambda: text.TfidfVectorizer(analyzer="char"),
         models.liked, models.reviews, refusal="no char n-grams"),
    case("FunctionTransformer of Python code",
         lambda: preprocessing.FunctionTransformer(lambda x: x + 1), refusal="Python code"),
    case("DBSCAN", cluster.DBSCAN, refusal="neither predict nor transform"),
    case("NMF", lambda: decomposition.NMF(2, max_iter=500), rows=models.positive,
         refusal="optimisation"),
    case("SVC with probabilities of libsvm", lambda: svm.SVC(probability=True),
         refusal="CalibratedClassifierCV"),
    case("Isomap", manifold.Isomap, refusal="neighbourhood"),
)  # fmt: skip

CASES: tuple[Case, ...] = (*LINEAR, *TREES, *OTHERS, *TABLES, *BOOSTED, *REFUSED)
