// How steps in rounds converged: the metric of each pass that is watched, round by round, with the last five.

import { discard, draw, latencyAxis, layoutOf } from "./charts.js";
import { el, fill } from "./dom.js";
import { colours } from "./theme.js";

const WINDOW = 5;

export class RoundsChart {
  constructor(model) {
    this.model = model;
    this.panels = new Map(); // by step
    this.node = el("div");
  }

  close() {
    for (const panel of this.panels.values()) discard(panel.lastChild);
  }

  async show() {
    const { values } = this.model.document.rounds;
    const steps = [...new Set(values.map((row) => row.step))];
    for (const step of steps) {
      if (!this.panels.has(step)) this.panels.set(step, panelOf(step));
    }
    fill(this.node, [...this.panels.values()]);
    for (const step of steps) {
      const own = values.filter((row) => row.step === step);
      await drawRounds(own, this.panels.get(step).lastChild);
    }
  }
}

function panelOf(step) {
  const title = `Rounds of ${step}`;
  return el("section", { class: "panel", "aria-label": title }, el("h2", {}, title), el("div", { class: "chart" }));
}

async function drawRounds(rows, node) {
  const of = colours();
  const palette = [of.blue, of.orange, of.green, of.purple, of.red];
  const { metric, step } = rows[rows.length - 1];
  const names = [...new Set(rows.map((row) => row.pass))];
  const traces = names.map((name, place) => {
    const own = rows.filter((row) => row.pass === name);
    const color = palette[place % palette.length];
    return {
      type: "scatter",
      mode: "lines+markers",
      name: name.replace(`${step}+`, "").replaceAll("<", "&lt;"),
      x: own.map((row) => row.round),
      y: own.map((row) => row.value),
      line: { color },
      marker: { color, size: 8 },
    };
  });
  const last = Math.max(...rows.map((row) => row.round));
  const band = { type: "rect", xref: "x", yref: "paper", y0: 0, y1: 1, line: { width: 0 }, layer: "below" };
  const shapes = last < WINDOW ? [] : [{ ...band, x0: last - WINDOW + 0.5, x1: last + 0.5, fillcolor: of.shade }];
  const yaxis = metric.includes("_us_") ? latencyAxis(metric, traces) : { title: metric, rangemode: "tozero" };
  const xaxis = { title: "round (shaded: the last five)", dtick: last > 15 ? 5 : 1, range: [0.5, last + 0.5] };
  await draw(node, traces, layoutOf({ shapes, xaxis, yaxis, showlegend: names.length > 1 }));
}
