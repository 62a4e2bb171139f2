"""Boosted trees of XGBoost, LightGBM and CatBoost, read from each library's own dump of its model."""
