// Latency against load: levels of a staircase, probes of a search, steps of a curve; with the knee and the thresholds.
// Rule: a line joins only measurements whose loads differ by nothing but the rate.

import { addresses } from "./source.js";
import { begun, discard, draw, latencyAxis, layoutOf, WIDE_MARGIN } from "./charts.js";
import { intervalOf } from "./control_charts.js";
import { choice, el, fill } from "./dom.js";
import { count, latency } from "./format.js";
import { colours } from "./theme.js";

/** The load from which latency rises faster than the load does: the point farthest below the line between the ends, in
 * logarithms of both. null for fewer than four points, or where nothing bends. */
export function kneeOf(points) {
  if (points.length < 4) return null;
  const logs = points.map(([x, y]) => [Math.log(x), Math.log(y)]);
  const [first, last] = [logs[0], logs[logs.length - 1]];
  const slope = (last[1] - first[1]) / (last[0] - first[0]);
  const below = logs.map(([x, y]) => first[1] + slope * (x - first[0]) - y);
  const at = below.indexOf(Math.max(...below));
  const isRising = points.slice(0, at).every(([, y]) => y <= points[at][1]); // else there was a stall, or noise
  return below[at] > 0.1 && isRising ? points[at] : null;
}

export class LoadChart {
  constructor(model) {
    this.model = model;
    this.metric = null;
    this.bar = el("div", { class: "bar" });
    this.chart = el("div", { class: "chart tall" });
    this.note = el("p", { class: "quiet" });
    this.node = el(
      "section",
      { class: "panel", "aria-label": "latency against load" },
      el("h2", {}, "Latency against load"),
      this.bar,
      this.chart,
      this.note,
    );
  }

  close() {
    discard(this.chart);
  }

  measurements() {
    const counting = this.model.document.steps.filter((step) => step.counts !== false); // of attempts the last
    return counting.flatMap((step) => step.measurements.map((one) => ({ step, ...one })));
  }

  async show() {
    const all = this.measurements().filter((one) => one.metrics.overall_iops);
    this.node.hidden = all.length < 2;
    if (this.node.hidden) return;
    const paced = all.filter((one) => one.metrics.overall_response_us_p99 !== undefined);
    this.metric ??= paced.length > 1 ? "overall_response_us_p99" : "overall_service_us_p99";
    fill(
      this.bar,
      choice(
        "latency",
        this.model.document.over_load.map((metric) => [metric.name, metric.title]),
        this.metric,
        (value) => {
          this.metric = value;
          this.drawPoints(all);
        },
      ),
    );
    await this.drawPoints(all);
  }

  async drawPoints(all) {
    const isNewest = begun(this);
    const of = colours();
    const { verdict: scope, title } = this.model.document.over_load.find((metric) => metric.name === this.metric);
    const curves = curvesOf(all.filter((one) => one.metrics[this.metric] !== undefined));
    const palette = [of.blue, of.orange, of.green, of.purple, of.red];
    const loads = [...new Set(curves.map((one) => one.load))];
    const traces = [];
    const shapes = [];
    const annotations = [];
    for (const { name, load, pass, points: own } of curves) {
      const colour = palette[loads.indexOf(load) % palette.length];
      const sorted = [...own].sort((a, b) => a.metrics.overall_iops - b.metrics.overall_iops);
      const points = sorted.map((one) => [one.metrics.overall_iops, one.metrics[this.metric]]);
      const symbols = symbolsOf(sorted, scope);
      const texts = sorted.map(({ name: step, metrics, verdict }) =>
        `${step}: ${count(metrics.overall_iops)} IOPS, ${latency(metrics[this.metric])}, ${verdict}`.replaceAll(
          "<",
          "&lt;",
        ),
      );
      traces.push({
        type: "scatter",
        mode: "lines+markers",
        name: name.replaceAll("<", "&lt;"),
        showlegend: pass === 0,
        legendgroup: load,
        x: points.map(([x]) => x),
        y: points.map(([, y]) => y),
        line: { color: colour },
        marker: { color: colour, symbol: symbols, size: 9 },
        text: texts,
        hovertemplate: "%{text}<extra></extra>",
      });
      const knee = kneeOf(points);
      if (knee)
        annotations.push({
          x: knee[0],
          y: Math.log10(knee[1]),
          text: "knee",
          arrowcolor: of.grey,
          ay: -34,
          font: { color: of.ink },
        });
    }
    const limits = this.model.document.steps
      .flatMap((step) => step.thresholds.map((text) => this.limitOf(text)))
      .filter((one) => one !== null);
    const most = Math.max(...all.map((one) => one.metrics.overall_iops));
    for (const limit of new Set(limits)) {
      traces.push({
        type: "scatter",
        mode: "lines",
        name: `threshold ${latency(limit)}`,
        x: [0, most],
        y: [limit, limit],
        line: { color: of.red, dash: "longdash", width: 1.2 },
      });
    }
    const searches = (await this.searches()).filter((one) => one.metric === this.metric);
    if (!isNewest()) return;
    for (const search of searches)
      traces.push({
        type: "scatter",
        mode: "lines",
        name: `target ${latency(search.target)}`,
        x: [0, most],
        y: [search.target, search.target],
        line: { color: of.purple, dash: "longdash", width: 1.2 },
      });
    for (const search of searches) {
      const interval = intervalOf(search);
      shapes.push(...interval.shapes);
      annotations.push(...interval.annotations);
    }
    this.chart.hidden = !curves.length;
    if (!curves.length) {
      fill(this.note, `No measurement has a ${title}: it needs a rate below the maximum, and enough I/Os.`);
      return;
    }
    const signs = [
      symbolsOf(all, scope).includes("x") ? "Crosses missed a threshold." : "",
      symbolsOf(all, scope).includes("circle-open") ? "Do not use open circles: their verdicts say why." : "",
    ];
    fill(this.note, signs.filter(Boolean).join(" "));
    await draw(
      this.chart,
      traces,
      layoutOf({
        hovermode: "closest",
        shapes,
        annotations,
        xaxis: { title: "IOPS", rangemode: "tozero" },
        yaxis: latencyAxis(title, traces),
        margin: WIDE_MARGIN,
      }),
    );
  }

  /** The limit in us of a threshold of the shown metric; null of others. */
  limitOf(text) {
    const found = text.match(/^(\w+) (?:at most|<=) ([\d.]+) ?(ns|us|ms|s)\b/);
    if (!found || found[1] !== this.metric) return null;
    return Number(found[2]) * { ns: 1e-3, us: 1, ms: 1e3, s: 1e6 }[found[3]];
  }

  /** The last rows of the tables of searches. */
  async searches() {
    const { id, source } = this.model;
    const steps = this.model.document.steps.filter((step) => step.measurements.some((one) => one.level));
    const tables = await Promise.all(
      steps.map((step) => source.json(addresses.control(id, step.number)).catch(() => ({}))),
    );
    return tables
      .filter(({ find }) => find?.rows.length)
      .map(({ find: { columns, rows } }) =>
        Object.fromEntries(columns.map((name, place) => [name, rows[rows.length - 1][place]])),
      );
  }
}

/** Curves of measurements that differ by the rate alone: {name, load, pass, points}. A step with levels has its own;
 * where a load was measured at a rate again, that belongs to the next curve: the load's second pass. */
export function curvesOf(measurements) {
  const curves = new Map();
  for (const one of measurements) {
    const load = loadOf(one);
    const isTaken = (pass) => curves.get(`${pass} ${load}`)?.points.some((its) => rateOf(its) === rateOf(one));
    let pass = 0;
    while (isTaken(pass)) pass += 1;
    const key = `${pass} ${load}`;
    if (!curves.has(key)) curves.set(key, { name: nameOf(one), load, pass, points: [] });
    curves.get(key).points.push(one);
  }
  return [...curves.values()];
}

function nameOf(one) {
  const { rate, ...rest } = one.load;
  const hosts = one.hosts_in < one.hosts_of ? [`${one.hosts_in} of ${one.hosts_of} hosts`] : [];
  const changing = isConstant(one) ? [] : ["at a rate that changes"];
  return one.level ? one.step.name : [...Object.values(rest), ...changing, ...hosts].join(", ");
}

/** What it was asked for in all; where only some workloads are paced, what each of them was. */
function rateOf(one) {
  return one.iops_setting ?? one.parameters?.iops;
}

/** What a measurement drove, but for the rate and the seeds. */
function loadOf(one) {
  if (one.level) return `step ${one.step.number}`;
  const { iops, seed, scatter_seed, ...parameters } = one.parameters ?? {};
  return JSON.stringify([parameters, isConstant(one), one.hosts_in, one.hosts_of]);
}

function isConstant(one) {
  return one.parameters?.iops !== "profile";
}

function symbolsOf(measurements, scope) {
  return measurements.map((one) =>
    one.verdict === "failed" ? "x" : one[scope] === "invalid" ? "circle-open" : "circle",
  );
}
