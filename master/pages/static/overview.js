// A step over time: rate, latency, heat map, CPU, errors and what control saw, on one time axis.

import { TimeGroup, discard, draw, latencyAxis, latencyMarks, layoutOf, timeLine } from "./charts.js";
import { choice, el, fill } from "./dom.js";
import { eventTrack, legendOfPhases } from "./event_track.js";
import { latency, localTime, percentileName, zone } from "./format.js";
import { standingMeasurement } from "./figures.js";
import { chosenHistogram, fewerColumns, logRows, percentile, summed } from "./histogram.js";
import { controlCharts } from "./control_charts.js";
import { shapesOfPhases } from "./phase_shapes.js";
import { colours } from "./theme.js";

const SLIDER_STEPS = 740; // from p50 to p99.99, evenly in nines
const HEAT_COLUMNS = 400;
const ROWS_PER_DECADE = 24;
const WHY_NONE = {
  service: "none was completed",
  response: "they need a load below the maximum, where it is known when an I/O falls due",
};

/** The fraction that the slider's place stands for, rounded as people write it. */
function fractionAt(place) {
  const nines = Math.log10(2) + (place / SLIDER_STEPS) * (4 - Math.log10(2));
  const fraction = 1 - 10 ** -nines;
  const digits = nines < 1.999 ? 2 : nines < 2.999 ? 3 : 4;
  return Math.min(Number(fraction.toFixed(digits)), 0.9999);
}

function placeOf(fraction) {
  return Math.round(((-Math.log10(1 - fraction) - Math.log10(2)) / (4 - Math.log10(2))) * SLIDER_STEPS);
}

/** The charts of a step; `show()` draws what the model has. */
export class Overview {
  constructor(model, node) {
    this.model = model;
    this.time = "service";
    this.direction = "all";
    this.fraction = 0.99;
    this.group = new TimeGroup(model.zoom);
    this.charts = {};
    for (const name of ["track", "rate", "latency", "heat", "cpu", "errors"]) this.charts[name] = this.chart(name);
    this.control = el("div");
    this.legend = el("p", { class: "legend" });
    fill(
      node,
      this.section("Events", this.legend, this.charts.track),
      this.section("I/Os per second", this.charts.rate),
      this.section("Latency", this.controls(), this.charts.latency),
      this.section("Latency over time, I/Os at each latency", this.charts.heat),
      this.section("CPU of the hosts", this.charts.cpu),
      this.section("Errors and backlog", this.charts.errors),
      this.control,
    );
  }

  close() {
    Object.values(this.charts).forEach(discard);
    this.control.querySelectorAll(".chart").forEach(discard);
  }

  chart(name) {
    const node = el("div", { class: `chart ${name}` });
    this.group.add(node);
    return node;
  }

  section(title, ...content) {
    const chart = content[content.length - 1];
    chart.setAttribute("role", "img");
    chart.setAttribute("aria-label", `${title}, a chart`);
    return el("section", { class: "panel", "aria-label": title }, el("h2", {}, title), content);
  }

  controls() {
    const times = [
      ["service", "service time"],
      ["response", "response time"],
    ];
    const directions = [
      ["all", "all I/O"],
      ["read", "reads"],
      ["write", "writes"],
    ];
    this.readout = el("output", { class: "readout", for: "percentile" });
    const slider = el("input", {
      type: "range",
      id: "percentile",
      min: 0,
      max: SLIDER_STEPS,
      step: 1,
      "aria-label": "percentile",
      oninput: (event) => this.slide(fractionAt(Number(event.target.value))),
    });
    this.slider = slider;
    slider.value = placeOf(this.fraction);
    const presets = [0.5, 0.9, 0.99, 0.999, 0.9999].map((one) =>
      el("button", { type: "button", class: "small", onclick: () => this.slide(one) }, percentileName(one)),
    );
    return el(
      "div",
      { class: "bar" },
      choice("time", times, this.time, (value) => this.choose({ time: value })),
      choice("I/O", directions, this.direction, (value) => this.choose({ direction: value })),
      el("label", { class: "choice wide" }, el("span", {}, "percentile"), slider),
      this.readout,
      el("span", { class: "presets" }, presets),
    );
  }

  choose(what) {
    Object.assign(this, what);
    this.showLatency();
    this.showHeat();
  }

  slide(fraction) {
    this.fraction = fraction;
    this.slider.value = placeOf(fraction);
    this.slider.setAttribute("aria-valuetext", percentileName(fraction));
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.showLatency();
    });
  }

  async show() {
    if (!this.model.series) return;
    const { start } = this.model.series;
    if (start.length) this.group.spans(start[0], this.ends()[start.length - 1]);
    this.shapes = shapesOfPhases(this.model);
    await Promise.all([
      this.showTrack(),
      this.showRate(),
      this.showLatency(),
      this.showHeat(),
      this.showCpu(),
      this.showErrors(),
    ]);
    await controlCharts(this.model, this.control, this.group, this.shapes);
  }

  ends() {
    const { start, length_s: length } = this.model.series;
    return start.map((one, place) => one + (length[place] ?? 0));
  }

  /** Where the figures of subintervals stand: in their middles, as the cells of the heat map. */
  middles() {
    const { start, length_s: length } = this.model.series;
    return start.map((one, place) => one + (length[place] ?? 0) / 2);
  }

  layout(more) {
    return layoutOf({ shapes: this.shapes, uirevision: `${this.model.step}`, ...more });
  }

  showTrack() {
    const { phase, start } = this.model.series;
    fill(
      this.legend,
      legendOfPhases(phase).map(([words, colour]) => el("span", { class: `key of-${colour}` }, words)),
      el("span", {}, "grey bands are not measured"),
      start.length ? el("span", {}, `times in ${zone(start[0])}`) : null,
    );
    return eventTrack(this.model, this.charts.track, this.group, this.shapes);
  }

  async showRate() {
    const of = colours();
    const { metrics, iops_setting: setting } = this.model.series;
    const xs = this.middles();
    const lines = [timeLine("all", xs, metrics.overall_iops, of.blue, { width: 2 })];
    const hasBoth = metrics.read_iops.some((one) => one > 0) && metrics.write_iops.some((one) => one > 0);
    if (hasBoth) {
      lines.push(timeLine("reads", xs, metrics.read_iops, of.green, { dash: "dash" }));
      lines.push(timeLine("writes", xs, metrics.write_iops, of.orange, { dash: "dot" }));
    }
    const target = setting.map((one) => (typeof one === "number" ? one : null));
    if (target.some((one) => one !== null)) {
      lines.push(timeLine("target", xs, target, of.grey, { dash: "longdash", width: 1.2, shape: "hvh" }));
    }
    await this.group.draw(this.charts.rate, lines, this.layout({ yaxis: { title: "IOPS", rangemode: "tozero" } }));
  }

  /** The chosen percentile of each subinterval, from its histogram. */
  percentileLine(fraction) {
    const xs = this.model.columns.map((one) => one.start + one.length_s / 2);
    const ys = this.model.columns.map((one) => percentile(chosenHistogram(one, this.direction, this.time), fraction));
    return [xs, ys];
  }

  async showLatency() {
    const of = colours();
    const [xs, ys] = this.percentileLine(this.fraction);
    const name = percentileName(this.fraction);
    const category = this.direction === "all" ? "overall" : this.direction;
    const { metrics } = this.model.series;
    const of_csv = (what) => metrics[`${category}_${this.time}_us_${what}`];
    const middles = this.middles();
    const lines = [
      timeLine("max", middles, of_csv("max"), of.grey, { dash: "dot", width: 1.2 }),
      timeLine(name, xs, ys, of.red, { width: 2.4 }),
      timeLine("p50", middles, of_csv("p50"), of.blue, { width: 1.4 }),
      timeLine("mean", middles, of_csv("mean"), of.green, { dash: "dash", width: 1.2 }),
    ];
    this.sayPercentile(name, ys);
    const title = `${this.time} time`;
    const whose = this.direction === "all" ? "I/Os" : `${this.direction}s`;
    const words = `There are no ${this.time} times of ${whose}: ${WHY_NONE[this.time]}.`;
    await this.group.draw(this.charts.latency, lines, this.layout({ yaxis: latencyAxis(title, lines) }), words);
  }

  /** The figure beside the slider: of the measurement, once it is complete, else of the last subinterval. */
  sayPercentile(name, ys) {
    const measured = this.measuredHistogram();
    const us = measured ? percentile(measured, this.fraction) : (ys.findLast((one) => one !== null) ?? null);
    const isDiscredited =
      measured && us !== null && standingMeasurement(this.model.stepEntry)[`${this.time}_verdict`] === "invalid";
    const text = isDiscredited ? `[${latency(us)}]` : latency(us);
    const of = this.model.group > 1 ? "last column" : "last subinterval";
    fill(
      this.readout,
      `${name} ${text}`,
      us === null ? null : el("span", { class: "quiet" }, measured ? " over the measurement" : ` in the ${of}`),
    );
    this.readout.title =
      us === null
        ? "too few I/Os above it, or response times without a meaning"
        : measured
          ? ""
          : `in the ${of} that has it`;
    this.slider.setAttribute("aria-valuetext", `${name}, ${text}`);
  }

  /** The sum of the histograms of the standing measurement; null where it is not complete, or columns hold more. */
  measuredHistogram() {
    const of = standingMeasurement(this.model.stepEntry);
    if (!of || of.first === null || this.model.group > 1) return null;
    const own = this.model.columns.filter((one) => one.in_measurement && one.first >= of.first && one.first <= of.last);
    return summed(own.map((one) => chosenHistogram(one, this.direction, this.time)));
  }

  async showHeat() {
    const columns = fewerColumns(this.model.columns, HEAT_COLUMNS);
    const parts = columns.map((one) => chosenHistogram(one, this.direction, this.time));
    const used = parts.filter((one) => one?.valid && one.count);
    const lows = used.map((one) => one.min);
    if (!used.length) {
      const words = this.model.fault || `There are no ${this.time} times: ${WHY_NONE[this.time]}.`;
      await this.group.draw(this.charts.heat, [], this.layout(), words);
      return;
    }
    const low = Math.floor(Math.log10(Math.max(Math.min(...lows), 1)) * ROWS_PER_DECADE) / ROWS_PER_DECADE;
    const high = Math.log10(Math.max(...used.map((one) => one.max)));
    const rows = Math.max(Math.ceil((high - low) * ROWS_PER_DECADE), 1);
    const edges = Array.from({ length: rows + 1 }, (_, row) => low + row / ROWS_PER_DECADE);
    const cells = parts.map((one) => (one?.valid ? logRows(one, edges) : null));
    const z = Array.from({ length: rows }, (_, row) =>
      cells.map((one, place) => (one && one[row] >= 0.5 ? Math.log10(one[row] / columns[place].length_s) : null)),
    );
    const trace = {
      type: "heatmap",
      x: columns.map((one) => localTime(one.start + one.length_s / 2)),
      y: edges.slice(0, -1).map((one) => one + 0.5 / ROWS_PER_DECADE - 3),
      z,
      colorscale: "Cividis",
      hoverongaps: false,
      colorbar: {
        title: { text: "I/Os per s", side: "right", font: { size: 11 } },
        orientation: "h",
        thickness: 8,
        lenmode: "pixels",
        len: 200,
        ypad: 0,
        x: 1,
        xanchor: "right",
        y: 1.01,
        yanchor: "bottom",
        tickfont: { size: 10 },
        ticklabelposition: "outside top",
        ...decades(z),
      },
      customdata: z.map((row, at) =>
        row.map(
          (one) =>
            `${latency(10 ** (edges[at] - 3))} to ${latency(10 ** (edges[at + 1] - 3))}: ` +
            `${one === null ? 0 : (10 ** one).toPrecision(3)} I/Os per s`,
        ),
      ),
      hovertemplate: "%{x}<br>%{customdata}<extra></extra>",
    };
    const marks = latencyMarks(10 ** (low - 3), 10 ** (high - 3));
    const yaxis = { title: `${this.time} time`, tickvals: marks.tickvals.map(Math.log10), ticktext: marks.ticktext };
    await this.group.draw(
      this.charts.heat,
      [trace],
      this.layout({ yaxis, hovermode: "closest", showlegend: false, margin: { l: 74, r: 16, t: 36, b: 24 } }),
    );
  }

  async showCpu() {
    const of = colours();
    const { metrics } = this.model.series;
    const xs = this.middles();
    const own = metrics.cpu_busy_percent.map((busy, place) =>
      busy === null ? null : Math.max(busy - (metrics.cpu_others_percent[place] ?? 0), 0),
    );
    const lines = [
      timeLine("ivypy", xs, own, of.blue, { width: 2 }),
      timeLine("other processes", xs, metrics.cpu_others_percent, of.orange, { dash: "dash" }),
      timeLine("steal", xs, metrics.cpu_steal_percent, of.red, { dash: "dot" }),
      timeLine("busiest core", xs, metrics.busiest_core_percent, of.grey, { dash: "longdash", width: 1.2 }),
    ];
    await this.group.draw(this.charts.cpu, lines, this.layout({ yaxis: { title: "% of the cores", range: [0, 100] } }));
  }

  async showErrors() {
    const of = colours();
    const { metrics } = this.model.series;
    const xs = this.middles();
    const lines = [timeLine("errors", xs, metrics.errors, of.red, { shape: "hvh", width: 2 })];
    const others = [
      ["backlog", of.blue, "solid"],
      ["dropped", of.orange, "dash"],
      ["expired", of.purple, "dot"],
    ];
    for (const [name, colour, dash] of others) {
      lines.push(timeLine(name, xs, metrics[name], colour, { dash }));
    }
    const yaxis = { title: "I/Os", rangemode: "tozero" };
    const some = lines.filter((line) => line.y.some((one) => one));
    await this.group.draw(this.charts.errors, some, this.layout({ yaxis }), "No errors, no backlog.");
  }
}

/** Marks of a colour bar that is in powers of ten. */
function decades(z) {
  const values = z.flat().filter((one) => one !== null);
  const low = Math.ceil(values.reduce((least, one) => Math.min(least, one), Infinity));
  const high = Math.floor(values.reduce((most, one) => Math.max(most, one), -Infinity));
  const marks = Array.from({ length: Math.max(high - low + 1, 0) }, (_, place) => low + place);
  return { tickvals: marks, ticktext: marks.map((one) => String(Number((10 ** one).toPrecision(1)))) };
}
