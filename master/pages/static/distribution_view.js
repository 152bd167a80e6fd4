// The distribution of latency, with the axis of percentiles in nines: steps, instances, service beside response time.

import { addresses } from "./source.js";
import { begun, discard, draw, latencyAxis, layoutOf, WIDE_MARGIN } from "./charts.js";
import { choice, el, fill } from "./dom.js";
import { latency } from "./format.js";
import { summed, chosenHistogram } from "./histogram.js";
import { colours } from "./theme.js";

const MARKS = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999];
const FEWEST_ABOVE = 10;
const MOST_LINES = 12;

/** Where a fraction stands on an axis of nines. */
export function nines(fraction) {
  return -Math.log10(1 - fraction);
}

/** Points (nines, us) of a histogram that is given by its buckets' ends, as far as percentiles of the CSV go: at the
 * last one, FEWEST_ABOVE I/Os lie beyond it. */
export function distributionPoints(set) {
  const total = set.count.reduce((sum, one) => sum + one, 0);
  const found = { x: [], y: [] };
  let below = 0;
  for (let place = 0; place < set.count.length; place++) {
    if (total - below < FEWEST_ABOVE) break;
    found.x.push(nines(below / total));
    found.y.push((set.from_us[place] + set.below_us[place]) / 2);
    below += set.count[place];
  }
  if (found.x.length && total > FEWEST_ABOVE) {
    found.x.push(nines(1 - FEWEST_ABOVE / total)); // within the last bucket, which may hold many
    found.y.push(found.y[found.y.length - 1]);
  }
  return found;
}

export class DistributionView {
  constructor(model, node) {
    this.model = model;
    this.category = "overall";
    this.chart = el("div", { class: "chart tall" });
    this.note = el("p", { class: "quiet" });
    this.compared = new Set();
    this.kept = new Map();
    this.bar = el("div", { class: "bar" });
    fill(
      node,
      el(
        "section",
        { class: "panel", "aria-label": "distribution" },
        el("h2", {}, "Distribution of latency"),
        this.bar,
        this.chart,
        this.note,
      ),
    );
  }

  close() {
    discard(this.chart);
  }

  async show(what) {
    if (what === "figures" && this.step === this.model.step && this.shownOf === this.key()) return;
    [this.step, this.shownOf] = [this.model.step, this.key()];
    const categories = [
      ["overall", "all I/O"],
      ["read", "reads"],
      ["write", "writes"],
    ];
    const steps = this.model.document.steps.filter((one) => one.state === "ended" && one.number !== this.model.step);
    fill(
      this.bar,
      choice("I/O", categories, this.category, (value) => {
        this.category = value;
        this.shownOf = null;
        this.show();
      }),
      steps.length
        ? el(
            "fieldset",
            { class: "beside" },
            el("legend", {}, "beside step"),
            steps.slice(0, MOST_LINES).map((one) => this.besides(one)),
          )
        : null,
    );
    await this.drawLines();
  }

  key() {
    return `${this.model.by} ${this.model.instance} ${this.model.stepEntry?.state}`;
  }

  besides(step) {
    const toggle = (event) => {
      if (event.target.checked) this.compared.add(step.number);
      else this.compared.delete(step.number);
      this.drawLines();
    };
    return el(
      "label",
      { class: "check" },
      el("input", { type: "checkbox", checked: this.compared.has(step.number), onchange: toggle }),
      ` ${step.number} ${step.name}`,
    );
  }

  async sets(step) {
    const { id, by, instance, source } = this.model;
    const address = addresses.distribution(id, step, by, instance);
    const answer = await source.json(address).catch(() => ({ sets: {} }));
    return answer.sets;
  }

  async drawLines() {
    const isNewest = begun(this);
    const of = colours();
    const palette = [of.blue, of.orange, of.green, of.purple, of.red, of.grey];
    const traces = [];
    for (const [place, number] of [this.model.step, ...this.compared].entries()) {
      const step = this.model.document.steps.find((one) => one.number === number);
      const sets = await this.sets(number);
      if (!isNewest()) return;
      if (number === this.model.step && !Object.keys(sets).length) traces.push(...this.linesSoFar(of));
      for (const [time, dash] of [
        ["service", "solid"],
        ["response", "dash"],
      ]) {
        const set = sets[`${this.category}.${time}`];
        if (!set) continue;
        const name = `${this.compared.size ? `${step.name}, ` : ""}${time} time`;
        const { x, y } = distributionPoints(set);
        traces.push({
          type: "scatter",
          mode: "lines",
          name,
          x,
          y,
          line: { color: palette[place % palette.length], dash, shape: "hv", width: 2 },
          text: y.map(latency),
          hovertemplate: "%{text}",
        });
      }
    }
    fill(
      this.note,
      traces.length
        ? "Each line ends where fewer than 10 I/Os lie beyond it. Service time is from submission to completion, " +
            "response time from when the I/O fell due."
        : "",
    );
    const marks = MARKS.filter((one) => nines(one) <= Math.max(...traces.flatMap((one) => one.x), 1) + 0.3);
    const xaxis = {
      title: "percentile",
      tickvals: marks.map(nines),
      ticktext: marks.map((one) => `${Number((one * 100).toFixed(5))} %`),
      hoverformat: ".3f",
    };
    await draw(
      this.chart,
      traces,
      layoutOf({ xaxis, yaxis: latencyAxis("latency", traces), hovermode: "closest", margin: WIDE_MARGIN }),
      "No measurement of this step has latencies of these I/Os.",
    );
  }

  /** Before the measurement is complete: all subintervals so far. */
  linesSoFar(of) {
    return [
      ["service", "solid"],
      ["response", "dash"],
    ]
      .map(([time, dash]) => this.lineSoFar(of, time, dash))
      .filter(Boolean);
  }

  lineSoFar(of, time, dash) {
    const direction = this.category === "overall" ? "all" : this.category;
    const sum = summed(
      this.model.columns.map((one) => chosenHistogram(one, direction, time)).filter((one) => one?.valid),
    );
    if (!sum) return null;
    const edge = (bucket) => (bucket < 128 ? bucket : (64 + (bucket % 64)) * 2 ** (Math.floor(bucket / 64) - 1)) / 1000;
    const counts = [...sum.counts];
    const set = {
      from_us: counts.map((_, place) => edge(sum.low + place)),
      below_us: counts.map((_, place) => edge(sum.low + place + 1)),
      count: counts,
    };
    const { x, y } = distributionPoints(set);
    return {
      type: "scatter",
      mode: "lines",
      name: `${time} time so far, with the warmup`,
      x,
      y,
      line: { color: of.blue, dash, shape: "hv", width: 2 },
      text: y.map(latency),
      hovertemplate: "%{text}",
    };
  }
}
