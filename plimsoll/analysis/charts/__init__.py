"""Statistics in, charts out, as plain data for plotly: no chart is ever larger than its bins."""
