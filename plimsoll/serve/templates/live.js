"use strict";
(() => {
  const page = document.documentElement;
  const { picked, charts } = JSON.parse(document.getElementById("data").textContent);
  const place = (id) => document.getElementById(id);
  const seconds = new Map(); // each second of the run that is shown, by its number
  let shown = null;
  let spans = [];
  let keptS = 600;

  // All text comes from logs and sites: it only ever becomes text.
  function element(name, text, inner = []) {
    const made = document.createElement(name);
    made.textContent = text;
    made.append(...inner);
    return made;
  }

  function say(text, link) {
    const state = place("state");
    const now = text + (link === undefined ? "" : link.text);
    if (state.dataset.said === now) {
      return; // a screen reader says it once
    }
    state.dataset.said = now;
    state.textContent = text;
    if (link !== undefined) {
      const anchor = element("a", link.text);
      anchor.href = link.href;
      state.append(" ", anchor);
    }
  }

  // A chart names its colours as var(--name): the style sheet knows light, dark and paper.
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

  function draw() {
    const style = getComputedStyle(page);
    const rows = [...seconds.values()].sort((one, other) => one[0] - other[0]);
    const last = rows.length ? rows[rows.length - 1][0] : 0;
    const first = Math.max(rows.length ? rows[0][0] : 0, last - keptS);
    const x = rows.map((row) => row[0]);
    for (const [key, chart] of Object.entries(charts)) {
      const { data, layout } = coloured(chart, style);
      for (const trace of data) {
        trace.x = x;
        trace.y = rows.map((row) => row[trace.meta]);
      }
      layout.xaxis.range = [first, Math.max(last, first + 30)];
      layout.shapes = spans.map(([start, stop]) => ({
        type: "rect",
        yref: "paper",
        x0: Math.max(start, first),
        x1: stop,
        y0: 0,
        y1: 1,
        layer: "below",
        opacity: 0.14,
        fillcolor: style.getPropertyValue("--muted").trim(),
        line: { width: 1, color: style.getPropertyValue("--muted").trim() },
      }));
      const named = spans.filter(([start, stop]) => stop > start).slice(-4); // an instant is a line alone
      layout.annotations = named.map(([start, , text], line) => ({
        x: Math.max(start, first),
        y: 1,
        yref: "paper",
        xanchor: "left",
        yanchor: "top",
        yshift: -14 * line,
        showarrow: false,
        font: { size: 11 },
        text,
      }));
      const onPaper = page.dataset.scheme === "light";
      Plotly.react(
        place(`figure-${key}`),
        data,
        { ...layout, width: onPaper ? 640 : undefined },
        {
          responsive: true,
          displayModeBar: false,
          showSendToCloud: false,
        },
      );
    }
    page.dataset.drawn = "true";
  }

  // A slow machine, which may be the one that is measured, draws less often: a fifth of its time at most.
  let isDue = false;
  let tookMs = 0;
  function drawSoon() {
    if (isDue || document.hidden) {
      return;
    }
    isDue = true;
    setTimeout(() => {
      isDue = false;
      const from = performance.now();
      draw();
      tookMs = performance.now() - from;
    }, 4 * tookMs);
  }

  function table(rows, body, head) {
    body.replaceChildren(
      ...rows.map((cells) => {
        const made = cells.map((cell, number) => {
          const one = element(head && number === 0 ? "th" : "td", cell === null ? "–" : String(cell));
          if (head && number === 0) {
            one.scope = "row";
          }
          return one;
        });
        return element("tr", "", made);
      }),
    );
  }

  function showFigures(run) {
    shown = run.key;
    keptS = run.kept_s;
    spans = run.spans;
    for (const id of ["p999", "rate", "lag", "requests", "failures", "clock"]) {
      place(id).textContent = run[id];
    }
    place("name").textContent = run.name;
    place("about").replaceChildren(element("span", run.target), element("span", run.place));
    for (const row of run.seconds) {
      seconds.set(row[0], row);
    }
    for (const second of seconds.keys()) {
      if (second < run.t_s - keptS) {
        seconds.delete(second);
      }
    }
    place("phases").replaceChildren(...run.phases.map((text) => element("li", text)));
    const latest = [...seconds.values()].sort((one, other) => other[0] - one[0]).slice(0, 10);
    table(latest, place("numbers").querySelector("tbody"), false);
    place("host").hidden = run.host.length === 0;
    const host = run.host.map(([subject, name, ...values]) => [`${subject}: ${name}`, ...values]);
    table(host, place("host").querySelector("tbody"), true);
    place("experiment").hidden = run.status.length === 0;
    place("experiment").querySelector("pre").textContent = run.status.join("\n");
    const events = run.events.map(([at, text]) => element("li", "", [element("time", at), ` ${text}`]));
    place("events")
      .querySelector("ol")
      .replaceChildren(...events.reverse());
    place("shown").hidden = false;
    drawSoon();
  }

  function showOthers(running) {
    const others = running.filter((run) => run.key !== shown);
    place("others").hidden = others.length === 0;
    place("others")
      .querySelector("ul")
      .replaceChildren(
        ...others.map((run) => {
          const link = element("a", run.name);
          link.href = `/live?run=${encodeURIComponent(run.key)}`;
          return element("li", "", [link]);
        }),
      );
  }

  function take(message) {
    const { run, begun, running, last } = message;
    if (begun) {
      seconds.clear();
    }
    if (run === null) {
      const before = last && { text: `The last one: ${last.text}`, href: `/runs/${encodeURIComponent(last.key)}` };
      say("Nothing is running. Waiting for the next run.", before ?? undefined);
    } else if (run.trouble) {
      say(run.trouble);
    } else {
      if (run.seconds) {
        showFigures(run);
      }
      if (run.ended) {
        const link = { text: "The finished run", href: `/runs/${encodeURIComponent(run.ended.key)}` };
        say(`It has ended. ${run.ended.text}.`, link);
      } else {
        say(`${run.name} runs.`);
      }
    }
    showOthers(running);
  }

  function follow() {
    const stream = new EventSource(`/live/stream?run=${encodeURIComponent(picked)}`);
    stream.addEventListener("message", (event) => take(JSON.parse(event.data)));
    stream.addEventListener("error", () => {
      say("The server does not answer. This page continues when it does.");
      if (stream.readyState === EventSource.CLOSED) {
        setTimeout(follow, 3000);
      }
    });
  }

  document.addEventListener("visibilitychange", () => shown && drawSoon());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown && draw());
  window.addEventListener("beforeprint", () => {
    page.dataset.scheme = "light";
    return shown && draw();
  });
  window.addEventListener("afterprint", () => {
    delete page.dataset.scheme;
    return shown && draw();
  });
  follow();
})();
