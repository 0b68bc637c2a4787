"use strict";
(() => {
  const page = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const scales = {};
  const PAPER_PX = 640; // as wide as A4 and Letter are between their margins, less what frames a figure
  let onPaper = false;

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

  const placeOf = (key) => document.getElementById(`figure-${key}`);

  const COLOURS = 8;

  // Of many backends only those that the reader chose, each in a colour of its own as far as there are enough.
  function chosen(key) {
    const boxes = [...document.querySelectorAll("input[data-shade]")].filter((box) => box.dataset.figure === key);
    if (!boxes.length) {
      return figures[key];
    }
    const colours = new Map();
    const shades = boxes.filter((box) => box.checked).map((box) => Number(box.dataset.shade));
    for (const shade of shades) {
      const free = [...Array(COLOURS).keys()].find((colour) => ![...colours.values()].includes(colour));
      colours.set(`backend ${shade}`, shade < COLOURS ? shade : (free ?? shade % COLOURS));
    }
    const data = figures[key].data
      .filter((trace) => !trace.legendgroup || colours.has(trace.legendgroup))
      .map((trace) => {
        const own = Number((trace.legendgroup ?? "").split(" ")[1]) % COLOURS;
        const text = JSON.stringify(trace);
        const colour = colours.get(trace.legendgroup);
        return JSON.parse(
          colour === undefined ? text : text.replaceAll(`"var(--run-${own + 1})"`, `"var(--run-${colour + 1})"`),
        );
      });
    return { ...figures[key], data };
  }

  // What plotly draws, in the colours of the page as it is, and on the scale that the reader chose.
  function figureOf(key) {
    const figure = coloured(chosen(key), getComputedStyle(page));
    if (scales[key]) {
      figure.layout.yaxis.type = scales[key];
    }
    if (figure.layout.yaxis.type === "linear") {
      delete figure.layout.yaxis.tickvals; // those are for the log scale
      delete figure.layout.yaxis.tickmode;
    }
    return figure;
  }

  // A figure by itself, as for paper: light, on white, with its title, in letters that every program has.
  function picture(key) {
    const scheme = page.dataset.scheme;
    page.dataset.scheme = "light";
    const figure = figureOf(key);
    if (scheme === undefined) {
      delete page.dataset.scheme;
    }
    figure.layout.font.family = "Arial, Helvetica, 'Liberation Sans', sans-serif";
    figure.layout.paper_bgcolor = figure.layout.plot_bgcolor = "#ffffff";
    figure.layout.title = { text: figure.title, x: 0.01, xanchor: "left", y: 0.99, yanchor: "top", yref: "container" };
    figure.layout.title.font = { size: 16 };
    figure.layout.margin.t += 52;
    return figure;
  }

  const sizeOf = (key) => ({ width: 1000, height: Math.max(placeOf(key).clientHeight, 340) + 60 });

  // Names of files have nothing in them that a run directory could bring but letters and digits.
  const slug = (text) =>
    text
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, 60);

  const fileOf = (key) => [slug(document.title), key].filter(Boolean).join("-");

  function download(key) {
    return Plotly.downloadImage(picture(key), { format: "svg", filename: fileOf(key), ...sizeOf(key) });
  }

  // A cell of CSV (RFC 4180). A text that a spreadsheet would take for a formula has an apostrophe before it.
  function cell(value) {
    const text = String(value ?? "");
    const plain = typeof value !== "number" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  }

  // What the figure shows, a row a point: the series, what its axes are, and where the point is.
  function rowsOf(key) {
    const { data, layout } = chosen(key);
    const titleOf = (axis) => layout[axis.replace(/^[xy]/, "$&axis")]?.title?.text ?? "";
    const rows = [["series", "x_axis", "y_axis", "x", "y", "value"]];
    for (const trace of data) {
      const of = [trace.name ?? "", titleOf(trace.xaxis ?? "x"), titleOf(trace.yaxis ?? "y")];
      const [x, y] = [trace.x ?? [], trace.y ?? []];
      if (trace.z) {
        trace.z.forEach((row, i) => row.forEach((value, j) => rows.push([...of, x[j] ?? j, y[i] ?? i, value])));
      } else {
        for (let i = 0; i < Math.max(x.length, y.length); i++) {
          rows.push([...of, x[i], y[i], ""]);
        }
      }
    }
    return rows;
  }

  function downloadData(key) {
    const text = rowsOf(key)
      .map((row) => `${row.map(cell).join(",")}\r\n`)
      .join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = `${fileOf(key)}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  // The address of the figure: in the clipboard where the browser lets a page write there, and in the address bar.
  async function copyLink(button) {
    history.replaceState(null, "", `#figure-${button.dataset.link}`);
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
    } catch {
      button.textContent = "See address";
    }
    setTimeout(() => {
      button.textContent = "Link";
    }, 2000);
  }

  // `report.html#pictures=svg,png` leaves all figures in the page as data: URLs, for plimsoll report --figures.
  async function leavePictures(formats) {
    const found = {};
    for (const key of Object.keys(figures)) {
      found[key] = {};
      for (const format of formats) {
        found[key][format] = await Plotly.toImage(picture(key), {
          format,
          scale: format === "png" ? 2 : 1,
          ...sizeOf(key),
        });
      }
    }
    const kept = document.createElement("script");
    kept.type = "application/json";
    kept.id = "pictures";
    kept.textContent = JSON.stringify(found).replace(/</g, "\\u003c");
    document.body.append(kept);
  }

  function draw(key) {
    const place = placeOf(key);
    const figure = figureOf(key);
    const narrow = !onPaper && place.clientWidth < 600;
    if (onPaper) {
      figure.layout.width = PAPER_PX;
    }
    if (narrow) {
      figure.layout.font.size = 11;
      figure.layout.margin.l = 44;
      figure.layout.margin.r = 8;
      figure.layout.annotations = (figure.layout.annotations ?? []).filter((note) => note.name === "missing");
      figure.data.forEach((trace) => {
        trace.showscale = false;
        if (trace.type === "bar") {
          delete trace.text; // the hover says it
        }
      });
      Object.values(figure.layout).forEach((axis) => {
        delete axis.tickangle; // labels that do not fit side by side are turned
        if (axis.anchor === "x2") {
          delete axis.title; // it would stand in the figure on its left, which the caption tells apart
        }
      });
    }
    return Plotly.react(place, figure.data, figure.layout, {
      responsive: true,
      displaylogo: false,
      showSendToCloud: false, // plotly has a button that would; what is measured here stays here
      displayModeBar: narrow || onPaper ? false : "hover",
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "toImage"],
      modeBarButtonsToAdd: [
        { name: "svg", title: "Download as SVG", icon: Plotly.Icons.camera, click: () => download(key) },
      ],
    });
  }

  // What is folded away has no width yet: it is drawn when it is opened.
  const isFolded = (key) => placeOf(key).closest("details:not([open])") !== null;

  const drawAll = () => Promise.all(Object.keys(figures).map((key) => (isFolded(key) ? null : draw(key))));

  // What the reader sees is drawn at once, the rest figure by figure, so that the page can be read and scrolled meanwhile.
  async function drawInTurn() {
    const keys = Object.keys(figures);
    const isSeen = (key) => {
      const { top, bottom } = placeOf(key).getBoundingClientRect();
      return bottom > 0 && top < innerHeight;
    };
    const isDrawn = (key) => placeOf(key).classList.contains("js-plotly-plot");
    const left = keys.filter((key) => !isFolded(key));
    while (left.length) {
      const seen = left.findIndex(isSeen);
      const [key] = left.splice(Math.max(seen, 0), 1);
      if (!isDrawn(key) && !isFolded(key)) {
        await draw(key);
        await new Promise((resolve) => setTimeout(resolve));
      }
    }
  }

  for (const folded of document.querySelectorAll("details")) {
    folded.addEventListener("toggle", () => {
      const within = Object.keys(figures).filter((key) => folded.contains(placeOf(key)) && !isFolded(key));
      if (folded.open) {
        within.forEach(draw);
      }
    });
  }

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

  for (const button of document.querySelectorAll("button[data-csv]")) {
    button.addEventListener("click", () => downloadData(button.dataset.csv));
  }

  for (const button of document.querySelectorAll("button[data-link]")) {
    button.addEventListener("click", () => copyLink(button));
  }

  for (const box of document.querySelectorAll("input[data-shade]")) {
    box.addEventListener("change", () => draw(box.dataset.figure));
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  window.addEventListener("beforeprint", () => {
    page.dataset.scheme = "light";
    onPaper = true;
    drawAll();
  });
  window.addEventListener("afterprint", () => {
    delete page.dataset.scheme;
    onPaper = false;
    drawAll();
  });
  drawInTurn()
    .then(() => {
      const asked = /^#pictures=((?:svg|png)(?:,(?:svg|png))?)$/.exec(location.hash);
      return asked && leavePictures(asked[1].split(","));
    })
    .then(() => {
      page.dataset.drawn = "true";
    });
})();
