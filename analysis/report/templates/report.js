"use strict";
(() => {
  const page = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const scales = {};

  // A figure names its colours as var(--name): the style sheet knows light, dark and paper.
  function coloured(value, style) {
    if (typeof value === "string") {
      return value.startsWith("var(--") ? style.getPropertyValue(value.slice(4, -1)).trim() : value;
    }
    if (Array.isArray(value)) {
      return value.map((item) => (typeof item === "number" ? item : coloured(item, style)));
    }
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, style)]));
    }
    return value;
  }

  function draw(key) {
    const place = document.getElementById("figure-" + key);
    const figure = coloured(figures[key], getComputedStyle(page));
    if (scales[key]) {
      figure.layout.yaxis.type = scales[key];
    }
    if (figure.layout.yaxis.type === "linear") {
      delete figure.layout.yaxis.tickvals; // those are for the log scale
      delete figure.layout.yaxis.tickmode;
    }
    const narrow = place.clientWidth < 600;
    if (narrow) {
      figure.layout.font.size = 11;
      figure.layout.margin.l = 44;
      figure.layout.margin.r = 8;
      figure.layout.annotations = [];
      figure.data.forEach((trace) => { trace.showscale = false; });
    }
    return Plotly.react(place, figure.data, figure.layout, {
      responsive: true,
      displaylogo: false,
      displayModeBar: narrow ? false : "hover",
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      toImageButtonOptions: { format: "png", scale: 2, filename: "plimsoll-" + key },
    });
  }

  const drawAll = () => Promise.all(Object.keys(figures).map(draw));

  for (const button of document.querySelectorAll("button[data-scale]")) {
    button.addEventListener("click", () => {
      const key = button.dataset.figure;
      scales[key] = button.dataset.scale;
      for (const other of document.querySelectorAll("button[data-scale]")) {
        if (other.dataset.figure === key) {
          other.setAttribute("aria-pressed", String(other === button));
        }
      }
      draw(key);
    });
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  window.addEventListener("beforeprint", () => {
    page.dataset.scheme = "light";
    drawAll();
  });
  window.addEventListener("afterprint", () => {
    delete page.dataset.scheme;
    drawAll();
  });
  drawAll().then(() => {
    page.dataset.drawn = "true";
  });
})();
