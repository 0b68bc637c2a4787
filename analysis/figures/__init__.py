"""Statistics in, plotly figures out, as plain data: no figure is ever larger than its bins."""
