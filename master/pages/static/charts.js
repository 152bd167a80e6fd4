// Plotly, as every chart of the page uses it: one layout, one look, and charts over time that zoom together.

import { el, fill, prose } from "./dom.js";
import { colours } from "./theme.js";
import { localTime } from "./format.js";

const MOST_POINTS = 2000; // of a line; more are drawn as the lowest and highest of each stretch
const MARGIN = { l: 74, r: 16, t: 26, b: 24 }; // the same for all, so that their time axes are in line
export const WIDE_MARGIN = { ...MARGIN, b: 44 }; // where the lower axis has a title
const left = new WeakSet(); // charts that are no longer drawn
const drawing = new WeakMap(); // by chart: how many drawings are under way
const OPTIONS = { displaylogo: false, responsive: true, displayModeBar: false, doubleClick: "reset" };

/** A layout; `more` is merged over it, axis by axis. */
export function layoutOf(more = {}) {
  const of = colours();
  const axis = { gridcolor: of.grid, zerolinecolor: of.grid, linecolor: of.grid };
  const { xaxis = {}, yaxis = {}, ...rest } = more;
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: of.ink },
    margin: MARGIN,
    hovermode: "x unified",
    hoverlabel: { font: { size: 11 } },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 11 } },
    showlegend: true,
    xaxis: { ...axis, ...titled(xaxis) },
    yaxis: { ...axis, ...titled(yaxis) },
    ...rest,
  };
}

/** An axis whose title is a text. */
function titled(axis) {
  return typeof axis.title === "string"
    ? { ...axis, title: { text: axis.title, standoff: 6, font: { size: 11 } } }
    : axis;
}

/** Of a view that reads before it draws: whether nothing was begun since, so that what was chosen last is drawn. */
export function begun(view) {
  const own = (view.draws ?? 0) + 1;
  view.draws = own;
  return () => view.draws === own;
}

/** Draw into a node, or draw it anew. Settles when the drawing is done. `otherwise`: the sentence that stands there
 * where no trace has a value. */
export async function draw(node, traces, layout, otherwise = "") {
  const isEmpty = otherwise && !traces.some((one) => one.y.some((value) => value !== null));
  sayInstead(node, isEmpty ? otherwise : "");
  if (isEmpty || left.has(node)) return;
  drawing.set(node, (drawing.get(node) ?? 0) + 1);
  try {
    await Plotly.react(node, traces, layout, OPTIONS);
  } finally {
    drawing.set(node, drawing.get(node) - 1);
    if (left.has(node)) discard(node);
  }
}

/** A sentence in a chart's place; "" is the chart. */
function sayInstead(node, words) {
  const before = node.previousElementSibling;
  const place = before?.matches(".instead") ? before : el("p", { class: "quiet instead" });
  if (place !== before && words) node.before(place);
  fill(place, prose(words));
  place.hidden = !words;
  node.hidden = Boolean(words);
}

/** Forget a chart, with the listeners that it has on the window: at once, or when what is being drawn is done, since
 * Plotly goes on with the chart until then. */
export function discard(node) {
  left.add(node);
  if (node.data && !drawing.get(node)) Plotly.purge(node);
}

/** Points of a line: all where they are few, else lowest and highest of each stretch, so that no peak is lost. */
export function decimated(xs, ys, most = MOST_POINTS) {
  if (xs.length <= most) return { x: xs, y: ys };
  const size = Math.ceil((2 * xs.length) / most);
  const found = { x: [], y: [] };
  for (let at = 0; at < xs.length; at += size) {
    const end = Math.min(at + size, xs.length);
    let [low, high] = [-1, -1];
    for (let place = at; place < end; place++) {
      if (ys[place] === null) continue;
      if (low < 0 || ys[place] < ys[low]) low = place;
      if (high < 0 || ys[place] > ys[high]) high = place;
    }
    const kept = low < 0 ? [at] : low === high ? [low] : [Math.min(low, high), Math.max(low, high)];
    for (const place of kept) {
      found.x.push(xs[place]);
      found.y.push(ys[place]);
    }
  }
  return found;
}

/** A line over time. `xs`: unix seconds. */
export function timeLine(name, xs, ys, colour, { dash = "solid", width = 1.6, shape = "linear", more = {} } = {}) {
  const { x, y } = decimated(xs, ys);
  return {
    type: "scatter",
    mode: x.length === 1 ? "markers" : "lines",
    name,
    x: x.map(localTime),
    y,
    line: { color: colour, dash, width, shape },
    connectgaps: false,
    ...more,
  };
}

const CLOCK = [
  { dtickrange: [null, 1000], value: "%H:%M:%S.%L" },
  { dtickrange: [1000, 60000], value: "%H:%M:%S" },
  { dtickrange: [60000, 86400000], value: "%H:%M" },
  { dtickrange: [86400000, null], value: "%Y-%m-%d" },
];
const WIDTH_OF_TIME = 100; // pixels, of a mark with the room around it
const LEAST_MARKS = 3;
const TENTHS = Array.from({ length: 90 }, (_, place) => (place + 10) / 10);
const DIGITS = [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 8], TENTHS]; // from the widest range to the narrowest

/** Marks of a logarithmic axis of latencies in us, with units: "1 ms". */
export function latencyMarks(low, high) {
  const sets = DIGITS.map((digits) => marksWithin(low, high, digits));
  const marks = sets.find((one) => one.length >= LEAST_MARKS) ?? sets[sets.length - 1];
  return { tickvals: marks, ticktext: marks.map(latencyMark) };
}

function marksWithin(low, high, digits) {
  const marks = [];
  for (let power = -3; power <= 8; power++) {
    for (const digit of digits) {
      const us = Number((digit * 10 ** power).toPrecision(3));
      if (us >= low * 0.99 && us <= high * 1.01) marks.push(us);
    }
  }
  return marks;
}

function latencyMark(us) {
  if (us < 1) return `${Math.round(us * 1000)} ns`;
  if (us < 1e3) return `${us} us`;
  return us < 1e6 ? `${us / 1e3} ms` : `${us / 1e6} s`;
}

/** A logarithmic axis for latencies that are within these lines' values. */
export function latencyAxis(title, traces) {
  const values = traces.flatMap((one) => one.y).filter((one) => one !== null && one > 0);
  const low = values.reduce((least, one) => Math.min(least, one), Infinity);
  const high = values.reduce((most, one) => Math.max(most, one), 0);
  if (!values.length) return { type: "log", title };
  const room = (high / low) ** 0.05 * 1.02;
  const [from, to] = [low / room, high * room];
  return { type: "log", title, range: [Math.log10(from), Math.log10(to)], ...latencyMarks(from, to) };
}

/** Charts that have the same time axis: a zoom of one is a zoom of all. `zoom`: {range}, which outlives the charts;
 * null is all. */
export class TimeGroup {
  constructor(zoom = { range: null }) {
    this.nodes = [];
    this.zoom = zoom;
    this.whole = undefined; // of the time that there is
    this.told = new Map(); // by chart: what it was told to change, as text, and has not done yet
  }

  add(node) {
    this.nodes.push(node);
    node.dataset.time = "1";
  }

  /** All charts show the time between these, in unix seconds, where they are not zoomed. */
  spans(from, to) {
    this.whole = [localTime(from), localTime(to)];
  }

  /** A copy for each chart: Plotly writes a zoom into the range that it was given. */
  shown() {
    const range = this.zoom.range ?? this.whole;
    return range && [...range];
  }

  async draw(node, traces, layout, otherwise = "") {
    const nticks = Math.max(Math.floor(node.clientWidth / WIDTH_OF_TIME), 2);
    const xaxis = { type: "date", tickformatstops: CLOCK, tickangle: 0, nticks, ...layout.xaxis, range: this.shown() };
    await draw(node, traces, { ...layout, xaxis }, otherwise);
    if (node.isFollowed || !node.data) return;
    node.isFollowed = true;
    node.on("plotly_relayout", (change) => this.zoomed(node, change));
  }

  /** What a chart says of a change: the user's, or the answer to ours, which may come after the user's next one. */
  zoomed(from, change) {
    if (this.isAnswer(from, change)) return;
    if ("xaxis.range[0]" in change) this.zoom.range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    else if (change["xaxis.autorange"] || change["xaxis.range"]) this.zoom.range = null;
    else return;
    if (this.zoom.range && this.zoom.range.join() === this.whole?.join()) this.zoom.range = null;
    for (const one of this.nodes) {
      const range = this.shown();
      if (one !== from && one.data) this.tell(one, range ? { "xaxis.range": range } : { "xaxis.autorange": true });
    }
  }

  async tell(node, change) {
    const told = this.told.get(node) ?? [];
    const text = JSON.stringify(change);
    this.told.set(node, told);
    told.push(text);
    try {
      await Plotly.relayout(node, change);
    } finally {
      told.splice(told.indexOf(text), 1);
    }
  }

  isAnswer(node, change) {
    return this.told.get(node)?.includes(JSON.stringify(change)) ?? false;
  }
}

/** The span of a chart in which nothing is measured, as a shade. */
export function shade(from, to, colour) {
  return {
    type: "rect",
    xref: "x",
    yref: "paper",
    x0: localTime(from),
    x1: localTime(to),
    y0: 0,
    y1: 1,
    fillcolor: colour,
    line: { width: 0 },
    layer: "below",
  };
}

export function upright(at, colour, dash = "dot") {
  const x = localTime(at);
  return {
    type: "line",
    xref: "x",
    yref: "paper",
    x0: x,
    x1: x,
    y0: 0,
    y1: 1,
    line: { color: colour, width: 1, dash },
  };
}
