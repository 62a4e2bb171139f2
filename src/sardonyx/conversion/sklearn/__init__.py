"""scikit-learn estimators as ONNX: `frontend` has the routes, `estimators/` what each one computes."""
