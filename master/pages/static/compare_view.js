// Several runs over each other: rate and latency over the time since each step began, and distributions.

import { addresses } from "./source.js";
import { begun, decimated, draw, discard, latencyAxis, layoutOf, WIDE_MARGIN } from "./charts.js";
import { badge, marked, choice, el, fill, prose, table } from "./dom.js";
import { distributionPoints, nines } from "./distribution_view.js";
import { figureText, standingMeasurement } from "./figures.js";
import { colours } from "./theme.js";

const DASHES = ["solid", "dash", "dot", "longdash", "dashdot"];

/** Show a comparison in a node; returns what ends it. */
export function showComparison(source, node, ids) {
  const view = new ComparisonView(source, node, ids);
  view.open();
  return () => view.close();
}

class ComparisonView {
  constructor(source, node, ids) {
    [this.source, this.node, this.ids] = [source, node, ids];
    this.isTested = document.querySelector(".comparison") !== null; // tables of `ivypy compare` stand above
    this.charts = Object.fromEntries(
      ["rate", "latency", "distribution"].map((name) => [name, el("div", { class: `chart ${name}` })]),
    );
  }

  close() {
    Object.values(this.charts).forEach(discard);
  }

  async open() {
    fill(this.node, el("p", { class: "empty", role: "status" }, "Loading the runs ..."));
    try {
      this.documents = await Promise.all(this.ids.map((id) => this.source.json(addresses.run(id))));
    } catch (error) {
      fill(this.node, el("p", { class: "empty", role: "alert" }, error.message));
      return;
    }
    document.title = "Comparison - ivypy";
    this.names = [...new Set(this.documents.flatMap((one) => one.steps.map((step) => step.name)))];
    const shared = this.names.filter((name) =>
      this.documents.every((one) => one.steps.some((step) => step.name === name)),
    );
    this.step = shared[0] ?? this.names[0] ?? "";
    this.build();
    await this.show();
  }

  build() {
    this.tableNode = el("div");
    this.without = el("p", { class: "quiet" });
    fill(
      this.node,
      ...this.head(),
      el(
        "div",
        { class: "bar" },
        choice(
          "step",
          this.names.map((one) => [one, one]),
          this.step,
          (value) => {
            this.step = value;
            this.show();
          },
        ),
      ),
      this.tableNode,
      this.without,
      this.panel("I/Os per second", this.charts.rate),
      this.panel("Service time p99", this.charts.latency),
      this.panel("Distribution of service time", this.charts.distribution),
    );
  }

  head() {
    if (this.isTested) return [el("h2", {}, "The runs over each other")];
    const words =
      "These are overlays, without a test of what chance may do: `ivypy compare A --vs B` has intervals and outcomes.";
    return [el("h1", {}, `Comparison of ${this.ids.length} runs`), el("p", { class: "quiet" }, prose(words))];
  }

  panel(title, chart) {
    return el("section", { class: "panel", "aria-label": title }, el("h2", {}, title), chart);
  }

  /** [run, step] of each run that has the chosen step: of a repeated one the last. */
  chosen() {
    return this.documents
      .map((found, place) => [this.ids[place], found, found.steps.findLast((one) => one.name === this.step)])
      .filter(([, , step]) => step);
  }

  async show() {
    const isNewest = begun(this);
    const chosen = this.chosen();
    const missing = this.documents
      .map((one) => one.run.run)
      .filter((run) => !chosen.some(([, found]) => found.run.run === run));
    fill(this.without, missing.length ? `Without a step ${this.step}: ${missing.join(", ")}.` : "");
    fill(
      this.tableNode,
      table(
        this.step,
        [
          { title: "run", cell: ([, found]) => found.run.run },
          { title: "verdict", cell: ([, , step]) => badge(step.verdict || step.state) },
          ...this.documents[0].headline.map((metric) => ({
            title: metric.title,
            number: true,
            cell: ([, , step]) => figure(standingMeasurement(step), metric),
          })),
        ],
        chosen,
      ),
    );
    const series = await Promise.all(
      chosen.map(([id, , step]) => this.source.json(addresses.series(id, step.number, "all", "all", 0))),
    );
    const sets = await Promise.all(
      chosen.map(([id, , step]) =>
        this.source
          .json(addresses.distribution(id, step.number, "all", "all"))
          .then((one) => one.sets)
          .catch(() => ({})),
      ),
    );
    if (!isNewest()) return;
    await this.drawLines(this.charts.rate, chosen, series, "overall_iops", {
      yaxis: { title: "IOPS", rangemode: "tozero" },
    });
    await this.drawLines(this.charts.latency, chosen, series, "overall_service_us_p99", null);
    const traces = chosen
      .map(([, found], place) => this.distribution(found, sets[place]["overall.service"], place))
      .filter(Boolean);
    const marks = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];
    const xaxis = {
      title: "percentile",
      tickvals: marks.map(nines),
      ticktext: marks.map((one) => `${Number((one * 100).toFixed(5))} %`),
    };
    await draw(
      this.charts.distribution,
      traces,
      layoutOf({ hovermode: "closest", xaxis, yaxis: latencyAxis("service time", traces), margin: WIDE_MARGIN }),
      "No measurement of this step has service times.",
    );
  }

  /** A colour for each side where there are two, whose runs are named "A1 ...", "B1 ...", else for each run. */
  look(found, place) {
    const of = colours();
    const [, side, number] = (this.isTested && /^([AB])(\d+) /.exec(found.run.run)) || [];
    if (side)
      return { color: side === "A" ? of.blue : of.orange, dash: DASHES[(number - 1) % DASHES.length], width: 1.8 };
    const palette = [of.blue, of.orange, of.green, of.purple, of.red, of.grey];
    return {
      color: palette[place % palette.length],
      dash: DASHES[Math.floor(place / palette.length + place) % DASHES.length],
      width: 1.8,
    };
  }

  async drawLines(node, chosen, series, metric, more) {
    const traces = chosen.map(([, found], place) => {
      const { start, length_s: length, metrics } = series[place];
      const xs = start.map((one, at) => one + (length[at] ?? 0) / 2 - start[0]);
      return {
        type: "scatter",
        mode: "lines",
        name: found.run.run.replaceAll("<", "&lt;"),
        ...decimated(xs, metrics[metric]),
        line: this.look(found, place),
      };
    });
    const layout = more ?? { yaxis: latencyAxis("service time p99", traces) };
    await draw(
      node,
      traces,
      layoutOf({ xaxis: { title: "seconds since the step began" }, margin: WIDE_MARGIN, ...layout }),
      "No subinterval has this figure: a p99 needs 1,000 I/Os in one, so a higher rate or a longer `subinterval`.",
    );
  }

  distribution(found, set, place) {
    if (!set) return null;
    return {
      type: "scatter",
      mode: "lines",
      name: found.run.run.replaceAll("<", "&lt;"),
      ...distributionPoints(set),
      line: { ...this.look(found, place), shape: "hv" },
    };
  }
}

function figure(measured, metric) {
  return marked(figureText(metric, measured?.metrics ?? {}), measured?.[metric.verdict]);
}
