// Where on the LUNs the I/Os of a measurement were: how many in each section, what they took, and a map of instances.

import { addresses } from "./source.js";
import { begun, discard, draw, latencyAxis, layoutOf, WIDE_MARGIN } from "./charts.js";
import { choice, el, fill } from "./dom.js";
import { count, latency } from "./format.js";
import { colours } from "./theme.js";

const KINDS = [
  ["read", "reads", "reads"],
  ["change", "changes", "writes, trims, zeroes"],
];
const FIGURES = [
  ["count", "I/Os"],
  ["mean", "mean service time"],
  ["max", "longest service time"],
];
const FEWEST_TO_MAP = 2;
const MAP_ROW = 22; // pixels
const MAP_AROUND = 110;
const NAME_WIDTH = 24; // letters of an instance beside the map

export class AddressView {
  constructor(model, node) {
    this.model = model;
    this.kind = "read";
    this.figure = "mean";
    this.counts = el("div", { class: "chart" });
    this.times = el("div", { class: "chart tall" });
    this.map = el("div", { class: "chart" });
    this.note = el("p", { class: "quiet" });
    const change = (field) => (value) => {
      this[field] = value;
      this.drawMap();
    };
    const ofKinds = KINDS.map(([kind, , words]) => [kind, words]);
    this.bar = el(
      "div",
      { class: "bar" },
      choice("I/O", ofKinds, this.kind, change("kind")),
      choice("figure", FIGURES, this.figure, change("figure")),
    );
    this.mapPanel = panel("Map of the instances", this.bar, this.map, this.note);
    fill(node, panel("I/Os by address", this.counts), panel("Service time by address", this.times), this.mapPanel);
  }

  close() {
    for (const chart of [this.counts, this.times, this.map]) discard(chart);
  }

  async show(what) {
    const { id, step, by, instance, source, stepEntry } = this.model;
    const key = [step, by, instance, stepEntry?.state].join(" ");
    if (what === "figures" && key === this.shownOf) return;
    const isNewest = begun(this);
    let own = null;
    let otherwise = this.whyNone();
    try {
      if (!otherwise) own = (await source.json(addresses.sections(id, step, by, instance))).columns;
      this.shownOf = key;
    } catch (error) {
      otherwise = error.message; // it is asked again at the next occasion
    }
    if (!isNewest()) return;
    const none = "This instance has none: its rollup has no files (csv: false).";
    await this.drawInstance(own, otherwise || (own ? "No I/O of this measurement completed." : none));
    this.answer = own && by !== "all" ? await this.mapOf(addresses.sectionMap(id, step, by)) : { of: 0, instances: {} };
    if (isNewest()) await this.drawMap();
  }

  /** Why this step has no figures by address; "" where it has. */
  whyNone() {
    if (this.model.stepEntry?.by_address) return "";
    if (this.model.stepEntry?.state === "running")
      return "They are there when the step has ended, if its plan has `by_address`.";
    return "There are none: the plan of this step has no `by_address`, or nothing was measured.";
  }

  /** A report leaves it out where there is no room. */
  async mapOf(address) {
    return this.model.source.json(address).catch(() => ({ of: 0, instances: {} }));
  }

  async drawInstance(own, otherwise) {
    const of = colours();
    const kinds = KINDS.filter(([, name]) => own?.[name].some((one) => one > 0));
    const colour = { read: of.blue, change: of.orange };
    const ends = own ? sectionEnds(own.reads.length) : [];
    const xaxis = { title: "place on the LUN", ticksuffix: " %", range: [0, 100] };
    const bars = kinds.map(([kind, name, words]) => ({
      type: "bar",
      name: words,
      x: own[name].map((_, place) => (ends[place] + ends[place + 1]) / 2),
      width: 100 / own.reads.length,
      y: own[name],
      marker: { color: colour[kind], line: { width: 0 } },
      text: own[name].map(count),
      textposition: "none",
      hovertemplate: "%{text}",
    }));
    const layout = { xaxis, margin: WIDE_MARGIN, showlegend: kinds.length > 1 };
    await draw(
      this.counts,
      bars,
      layoutOf({ ...layout, barmode: "stack", yaxis: { title: "I/Os", rangemode: "tozero" } }),
      otherwise,
    );
    const lines = kinds.flatMap(([kind, , words]) => [
      timesOf(own[`${kind}_service_us_mean`], ends, `${words}: mean`, colour[kind], "solid"),
      timesOf(own[`${kind}_service_us_max`], ends, `${words}: longest`, colour[kind], "dot"),
    ]);
    const yaxis = latencyAxis("service time", lines);
    await draw(this.times, lines, layoutOf({ ...layout, showlegend: true, yaxis }), otherwise);
  }

  async drawMap() {
    const names = Object.keys(this.answer.instances);
    this.mapPanel.hidden = names.length < FEWEST_TO_MAP;
    if (this.mapPanel.hidden) return;
    const isTime = this.figure !== "count";
    const column = isTime ? `${this.kind}_service_us_${this.figure}` : KINDS.find(([kind]) => kind === this.kind)[1];
    const rows = names.map((name) => this.answer.instances[name][column]);
    const ends = sectionEnds(rows[0].length);
    const trace = {
      type: "heatmap",
      x: ends,
      y: names.map((_, place) => place),
      z: rows.map((row) => row.map((one) => (one && isTime ? Math.log10(one) : one))),
      text: rows.map((row) => row.map(isTime ? latency : count)),
      customdata: names.map((name) => rows[0].map(() => name.replaceAll("<", "&lt;"))),
      hovertemplate: "%{customdata}: %{text}<extra></extra>",
      colorscale: "Cividis",
      showscale: false,
    };
    const yaxis = {
      tickvals: names.map((_, place) => place),
      ticktext: names.map((name) => name.slice(0, NAME_WIDTH).replaceAll("<", "&lt;")),
      autorange: "reversed",
      automargin: true,
    };
    this.map.style.height = `${MAP_AROUND + MAP_ROW * names.length}px`;
    const known = rows.flat().filter((one) => (isTime ? one > 0 : one !== null));
    fill(this.note, this.scaleOf(known, isTime ? latency : count), this.othersOf(names.length));
    const xaxis = { title: "place on each LUN", ticksuffix: " %" };
    await draw(
      this.map,
      known.some((one) => one > 0) ? [trace] : [],
      layoutOf({ xaxis, yaxis, hovermode: "closest", margin: WIDE_MARGIN }),
      "No such I/O in this measurement.",
    );
  }

  /** What the colours mean. */
  scaleOf(known, text) {
    if (!known.length) return "";
    const [least, most] = [known.reduce((a, b) => Math.min(a, b)), known.reduce((a, b) => Math.max(a, b))];
    return `From ${text(least)} (dark) to ${text(most)} (bright). `;
  }

  othersOf(shown) {
    const others = this.answer.of - shown;
    return others > 0 ? `${others} more instances are in by_address.csv.` : "";
  }
}

function panel(title, ...parts) {
  return el("section", { class: "panel", "aria-label": title }, el("h2", {}, title), ...parts);
}

/** Where the sections of a LUN begin, and where the last one ends, in percent. */
function sectionEnds(sections) {
  return Array.from({ length: sections + 1 }, (_, place) => (100 * place) / sections);
}

/** Service times as a line with a step at each end of a section; `values`: us, null where nothing was done. */
function timesOf(values, ends, name, color, dash) {
  const padded = [...values, values[values.length - 1]];
  return {
    type: "scatter",
    mode: "lines",
    name,
    x: ends,
    y: padded,
    text: padded.map(latency),
    hovertemplate: "%{text}",
    line: { color, dash, shape: "hv", width: 2 },
    connectgaps: false,
  };
}
