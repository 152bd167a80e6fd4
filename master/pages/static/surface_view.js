// Time x percentile x latency in three dimensions: drawn when it is opened, since it is slow.

import { discard, draw, latencyMarks, layoutOf } from "./charts.js";
import { el, fill } from "./dom.js";
import { chosenHistogram, fewerColumns, percentile } from "./histogram.js";
import { nines } from "./distribution_view.js";
import { localTime } from "./format.js";
import { colours } from "./theme.js";

const SURFACE_TIMES = 240;
const MOST_CLOCK_MARKS = 5;
const LEVELS = 64;
const NARROW = 600; // pixels: a chart that is farther away, so that its marks are within
const MARKED = [0.5, 0.9, 0.99, 0.999, 0.9999];

export class SurfaceView {
  constructor(model, node) {
    this.model = model;
    this.chart = el("div", { class: "chart surface", role: "img", "aria-label": "latency over time and percentile" });
    this.note = el("p", { class: "quiet" });
    fill(
      node,
      el(
        "section",
        { class: "panel", "aria-label": "surface" },
        el("h2", {}, "Service time over time and percentile"),
        this.chart,
        this.note,
      ),
    );
  }

  close() {
    discard(this.chart);
  }

  async show(what) {
    if (what && this.shownOf === `${this.model.step} ${this.model.by} ${this.model.instance}`) {
      fill(this.note, "Drag to turn it. It shows what was measured when it was opened; open it again for the newest.");
      return;
    }
    this.shownOf = `${this.model.step} ${this.model.by} ${this.model.instance}`;
    const of = colours();
    const columns = fewerColumns(this.model.columns, SURFACE_TIMES);
    const fractions = Array.from({ length: LEVELS }, (_, place) => 1 - 10 ** -(0.3 + (place / (LEVELS - 1)) * 3.7));
    const z = fractions.map((fraction) =>
      columns.map((one) => {
        const us = percentile(chosenHistogram(one, "all", "service"), fraction);
        return us === null || us <= 0 ? null : Math.log10(us);
      }),
    );
    const known = z.flat().filter((one) => one !== null);
    if (!known.length) {
      fill(this.note, "There are no latencies to show yet.");
      return;
    }
    const low = known.reduce((least, one) => Math.min(least, one), Infinity);
    const high = known.reduce((most, one) => Math.max(most, one), -Infinity);
    const marks = latencyMarks(10 ** low, 10 ** high);
    // Seconds since the first, since WebGL has not digits enough for dates.
    const places = Array.from({ length: MOST_CLOCK_MARKS }, (_, place) =>
      Math.round((place / (MOST_CLOCK_MARKS - 1)) * (columns.length - 1)),
    );
    const axis = { gridcolor: of.grid, color: of.ink, backgroundcolor: "rgba(0,0,0,0)" };
    const far = this.chart.clientWidth < NARROW ? 1.35 : 1;
    const scene = {
      xaxis: {
        ...axis,
        title: { text: "" },
        tickvals: places.map((at) => columns[at].start - columns[0].start),
        ticktext: places.map((at) => localTime(columns[at].start).slice(11, 19)),
      },
      yaxis: {
        ...axis,
        title: { text: "percentile" },
        tickvals: MARKED.map(nines),
        ticktext: MARKED.map((one) => `${Number((100 * one).toFixed(2))}`),
      },
      zaxis: {
        ...axis,
        title: { text: "service time" },
        tickvals: marks.tickvals.map(Math.log10),
        ticktext: marks.ticktext,
      },
      camera: { eye: { x: -1.5 * far, y: -1.6 * far, z: 0.8 * far }, center: { x: 0.05, y: 0, z: -0.22 } },
      aspectmode: "manual",
      aspectratio: { x: 1.5, y: 1, z: 0.8 },
    };
    const trace = {
      type: "surface",
      x: columns.map((one) => one.start - columns[0].start),
      y: fractions.map(nines),
      z,
      colorscale: "Cividis",
      showscale: false,
      hoverinfo: "skip",
      contours: { x: { highlight: false }, y: { highlight: false }, z: { highlight: false } },
    };
    fill(this.note, "Drag to turn it. Empty where fewer than 10 I/Os lie beyond the percentile.");
    await draw(this.chart, [trace], layoutOf({ scene, margin: { l: 0, r: 0, t: 0, b: 0 } }));
  }
}
