// Runs of two sides compared, as `ivypy compare` decides it: a row for each step and figure. The chosen row is drawn:
// its figure of each run over the time of the runs, over the time within the runs, and its distribution.

import { addresses, listed, Missing } from "./source.js";
import { begun, decimated, draw, discard, latencyAxis, layoutOf, WIDE_MARGIN } from "./charts.js";
import { choice, counted, el, fill, marked, prose, table } from "./dom.js";
import { distributionPoints, nines } from "./distribution_view.js";
import { changeText, count, latency, shortTime } from "./format.js";
import { showTrend } from "./trend_chart.js";
import { colours } from "./theme.js";
import { untestedComparison } from "./untested_comparison.js";

const DASHES = ["solid", "dash", "dot", "longdash", "dashdot"];
const SIDES = ["a", "b"];
const TITLES = { a: "A, before", b: "B, after" };
const NEWEST = 3; // runs that are B, where so many and more are chosen
const FEWEST_FOR_TREND = 3;
const FEW_DIFFERENCES = 6; // lines that are shown at once
const NOT_TESTED = "Not tested: a figure that was added here takes no part in the correction and the conclusion.";
const MARKS = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

/** Show a comparison in a node; returns what ends it. `sides`: ids of the runs of A and of B; without B, by time.
 * `limit`: of a regression, in percent; "" for the usual one. */
export function showComparison(source, node, sides, limit) {
  const view = new ComparisonView(source, node, sides, limit);
  view.open();
  return () => view.close();
}

class ComparisonView {
  constructor(source, node, sides, limit) {
    [this.source, this.node, this.sides, this.limit] = [source, node, sides, limit];
    this.metrics = []; // besides the usual ones, which are not tested
    this.fault = ""; // of the limit that was typed
    this.place = 0; // of the row that is drawn
    this.charts = Object.fromEntries(
      ["trend", "overlay", "distribution"].map((name) => [name, el("div", { class: `chart ${name}` })]),
    );
  }

  close() {
    this.isClosed = true;
    Object.values(this.charts).forEach(discard);
  }

  async open() {
    document.title = "Comparison - ivypy";
    fill(this.node, el("p", { class: "empty", role: "status" }, "Comparing the runs ..."));
    try {
      if (!this.sides[1].length) {
        const { runs } = await this.source.json(addresses.runs());
        this.sides = sidesByTime(runs, this.sides[0]);
        history.replaceState(null, "", routeOf(this.sides, this.limit));
      }
      this.data = await this.compared();
    } catch (error) {
      if (!this.isClosed) fill(this.node, el("p", { class: "empty", role: "alert" }, error.message));
      return;
    }
    if (this.isClosed) return;
    this.runs = SIDES.flatMap((side) => this.data[side].map((run) => ({ ...run, side })));
    this.choose(firstRow(this.data.rows));
  }

  /** As the source has it; a report of several runs has only the runs. */
  async compared() {
    try {
      return await this.source.json(addresses.compare(...this.sides, this.metrics, this.limit));
    } catch (error) {
      if (this.source.isLive || !(error instanceof Missing)) throw error;
      return untestedComparison(this.source, this.sides);
    }
  }

  /** Show a row's figure in the charts. */
  choose(place) {
    this.place = place;
    const focused = this.node.contains(document.activeElement) && document.activeElement.getAttribute("aria-label");
    this.build();
    if (focused) this.node.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
    this.drawAll();
  }

  get row() {
    return this.data.rows[this.place];
  }

  build() {
    const { conclusion, method, notes, tested = [], faster = "" } = this.data;
    fill(
      this.node,
      el("h1", {}, `Comparison of ${this.runs.length} runs`),
      tested.map((line) => el("p", { class: "driven" }, line)),
      faster ? el("p", { class: "faster" }, prose(faster)) : null,
      el("p", { class: "outcome" }, prose(conclusion)),
      el(
        "ul",
        { class: "sides" },
        SIDES.map((side) => el("li", { class: side }, this.sideText(side))),
      ),
      notes.length
        ? el(
            "ul",
            { class: "quiet" },
            notes.map((one) => el("li", {}, one)),
          )
        : null,
      this.differences(),
      this.source.isLive ? el("div", { class: "bar" }, this.limitField(), this.moreFigures()) : null,
      this.fault ? el("p", { class: "fault", role: "alert" }, this.fault) : null,
      this.figures(),
      method ? el("p", { class: "quiet method" }, method) : null,
      this.metrics.length ? el("p", { class: "quiet method" }, NOT_TESTED) : null,
      this.row ? this.panels() : null,
    );
  }

  sideText(side) {
    const runs = this.data[side];
    if (!runs.length) return `${TITLES[side]}: no runs`;
    const names =
      runs.length > 2 ? `${runs[0].run} to ${runs[runs.length - 1].run}` : runs.map((one) => one.run).join(", ");
    const parents = [...new Set(runs.map((run) => run.parent).filter(Boolean))];
    const place = parents.length === 1 ? ` in ${parents[0]}` : "";
    return `${TITLES[side]}: ${counted(runs.length, "run")}${place}: ${names}`;
  }

  differences() {
    const { plan_differences: plan, differences } = this.data;
    if (!plan) return null; // nobody looked
    const lines = differences.map(
      ({ where, fact, a, b, who }) => `${where}: ${fact}: ${a} → ${b}${who ? ` (${who})` : ""}`,
    );
    if (!plan.length && !lines.length)
      return this.data.a.length
        ? el("p", { class: "quiet" }, "A and B have the same plan, hosts, LUNs and settings.")
        : null;
    return el(
      "details",
      { open: plan.length + lines.length <= FEW_DIFFERENCES },
      el("summary", {}, `What differs between A and B: ${counted(plan.length + lines.length, "line")}`),
      plan.length ? el("pre", { tabindex: 0 }, plan.join("\n")) : null,
      el(
        "ul",
        {},
        lines.map((one) => el("li", {}, one)),
      ),
    );
  }

  limitField() {
    const input = el("input", {
      type: "text",
      inputmode: "decimal",
      size: 5,
      value: Number((100 * this.data.max_regression).toPrecision(6)),
      "aria-label": "max regression in percent",
      "aria-invalid": this.fault ? "true" : null,
      onchange: (event) => this.askAgain({ limit: event.target.value.replace("%", "").trim() }),
    });
    return el("label", { class: "choice limit" }, el("span", {}, "max regression"), input, el("span", {}, "%"));
  }

  moreFigures() {
    const shown = new Set(this.data.rows.flatMap(({ title }) => [title, title.replace(/^service_/, "")]));
    const names = this.data.metrics.filter((name) => !shown.has(name));
    return choice("another figure", [["", "choose"], ...names.map((one) => [one, one])], "", (name) => {
      if (name) this.askAgain({ metrics: [...this.metrics, name] }, (row) => row.is_added && row.metric.endsWith(name));
    });
  }

  /** A figure that was added is drawn, and takes no part in the conclusion: it can be taken away. */
  remove(title) {
    this.askAgain({ metrics: this.metrics.filter((name) => name !== title) });
  }

  /** The same runs with another limit or other figures; what is refused stays as it was. Drawn is the row that is
   * `wanted`, else the one that was. */
  async askAgain({ limit = this.limit, metrics = this.metrics }, wanted = () => false) {
    const isNewest = begun(this);
    const before = this.row;
    const isSame = (row) => row.key === before?.key && row.metric === before?.metric;
    try {
      const data = await this.source.json(addresses.compare(...this.sides, metrics, limit));
      if (!isNewest() || this.isClosed) return;
      [this.data, this.limit, this.fault] = [data, limit, ""];
      this.metrics = [...new Set(data.rows.filter((row) => row.is_added).map((row) => row.title))];
      history.replaceState(null, "", routeOf(this.sides, limit));
    } catch (error) {
      if (!isNewest() || this.isClosed) return;
      this.fault = error.message;
    }
    const places = [wanted, isSame].map((is) => this.data.rows.findIndex(is));
    this.choose(places.find((place) => place >= 0) ?? firstRow(this.data.rows));
  }

  figures() {
    const cell = (row) => [button(row), row.is_added ? [" ", removal(row)] : null];
    const removal = ({ title, key }) =>
      el(
        "button",
        {
          type: "button",
          class: "small",
          "aria-label": `remove ${title} of ${key}`,
          onclick: () => this.remove(title),
        },
        "×",
      );
    const button = (row) => {
      const place = this.data.rows.indexOf(row);
      return el(
        "button",
        {
          type: "button",
          class: "small",
          "aria-pressed": String(place === this.place),
          "aria-label": `draw ${row.title} of ${row.key}`,
          onclick: () => this.choose(place),
        },
        row.title,
      );
    };
    return table(
      "Figures: choose the one to draw",
      [
        { title: "figure", cell },
        { title: "step", class: "step-name", cell: (row) => row.key },
        { title: "change", number: true, cell: (row) => changeText(row.change) },
        { title: "outcome", class: "verdict-cell", cell: outcome },
        { title: "95 % interval", label: "95 %", number: true, cell: intervalOf },
        { title: "A", label: "A", number: true, cell: (row) => side(row, row.a, row.a_invalid) },
        { title: "B", label: "B", number: true, cell: (row) => side(row, row.b, row.b_invalid) },
        { title: "runs left out, or why not compared", class: "why", cell: (row) => row.why_not_compared },
      ],
      this.data.rows,
      { class: "compared" },
    );
  }

  panels() {
    const of = `${this.row.title} of ${this.row.key}`;
    const overlaid = this.overlaid();
    const few = overlaid.length < this.runs.length ? `, the last ${counted(overlaid.length, "run")}` : "";
    return [
      this.runs.length >= FEWEST_FOR_TREND ? this.panel(`Over the runs: ${of}`, this.charts.trend) : null,
      this.runsTable(),
      this.panel(`Within the runs: ${of}${few}`, this.charts.overlay),
      this.panel(`Distribution of ${this.row.set} time in ${this.row.key}${few}`, this.charts.distribution),
    ];
  }

  panel(title, chart) {
    return el("section", { class: "panel", "aria-label": title }, el("h2", {}, title), chart);
  }

  runsTable() {
    const figures = new Map(this.row.runs.map((one) => [one.run, one]));
    const link = (run) => (run.id ? el("a", { href: `#/run/${encodeURIComponent(run.id)}` }, run.run) : run.run);
    const name = (run) => [`${run.name} `, link(run)];
    const columns = [
      { title: "run", cell: name },
      { title: "side", cell: (run) => (this.source.isLive ? this.sideChoice(run) : run.side.toUpperCase()) },
      { title: "started", cell: (run) => shortTime(Date.parse(run.start_utc) / 1000) },
      { title: this.row.title, number: true, cell: (run) => this.ofRun(figures.get(run.name)) },
      { title: "left out", class: "why", cell: (run) => figures.get(run.name)?.left_out ?? "" },
    ];
    return el(
      "details",
      { open: this.isOpen, ontoggle: (event) => (this.isOpen = event.target.open) },
      el("summary", {}, `Each run${this.source.isLive ? ", and its side" : ""}`),
      table(`${this.row.title} of ${this.row.key}, of each run`, columns, this.runs),
    );
  }

  ofRun(figure) {
    const text = amount(this.row, figure?.value);
    return figure?.left_out && text !== "-" ? `[${text}]` : text;
  }

  /** Another side for a run, or none. */
  sideChoice(run) {
    const options = [
      ["a", "A"],
      ["b", "B"],
      ["", "left out"],
    ];
    return choice(`side of ${run.run}`, options, run.side, (side) => {
      const runs = this.runs.map((one) => (one.id === run.id ? { ...one, side } : one));
      const sides = SIDES.map((which) => runs.filter((one) => one.side === which).map((one) => one.id));
      if (sides.every((ids) => ids.length)) location.hash = routeOf(sides, this.limit);
      else this.choose(this.place);
    });
  }

  /** The runs that are drawn over each other, with the step that has the row's figure. */
  overlaid() {
    const names = new Set(this.data.overlaid);
    const steps = new Map(this.row.runs.map((one) => [one.run, one.step]));
    return this.runs
      .filter((run) => names.has(run.name) && run.id && steps.get(run.name) !== null)
      .map((run) => ({ ...run, step: steps.get(run.name) }));
  }

  async drawAll() {
    if (!this.row) return;
    const isNewest = begun(this);
    const row = this.row;
    if (this.runs.length >= FEWEST_FOR_TREND) await showTrend(this.charts.trend, this.data, row);
    const runs = this.overlaid();
    const [type, instance] = [row.rollup_type, row.rollup_instance];
    const orNone = (reading) => reading.catch(() => null);
    const [series, sets] = await Promise.all([
      Promise.all(runs.map((one) => orNone(this.source.json(addresses.series(one.id, one.step, type, instance, 0))))),
      Promise.all(
        runs.map((one) => orNone(this.source.json(addresses.distribution(one.id, one.step, type, instance)))),
      ),
    ]);
    if (!isNewest() || this.isClosed) return;
    await this.drawOverlay(runs, series);
    await this.drawDistribution(runs, sets);
  }

  async drawOverlay(runs, series) {
    const traces = runs.flatMap((run, place) => {
      const { start, length_s: length, metrics } = series[place] ?? {};
      if (!metrics?.[this.row.metric]) return [];
      const xs = start.map((one, at) => one + (length[at] ?? 0) / 2 - start[0]);
      return [{ ...this.line(run), ...decimated(xs, metrics[this.row.metric]) }];
    });
    const yaxis = this.row.is_rate
      ? { title: this.row.title, rangemode: "tozero" }
      : latencyAxis(this.row.title, traces);
    await draw(
      this.charts.overlay,
      traces,
      layoutOf({ xaxis: { title: "seconds since the step began" }, margin: WIDE_MARGIN, yaxis }),
      "No subinterval has this figure: a p99 needs 1,000 I/Os in one, so a higher rate or a longer `subinterval`.",
    );
  }

  async drawDistribution(runs, sets) {
    const traces = runs.flatMap((run, place) => {
      const set = sets[place]?.sets[`overall.${this.row.set}`];
      return set ? [{ ...this.line(run, "hv"), ...distributionPoints(set) }] : [];
    });
    const ticktext = MARKS.map((one) => `${Number((one * 100).toFixed(5))} %`);
    const xaxis = { title: "percentile", tickvals: MARKS.map(nines), ticktext };
    const yaxis = latencyAxis(`${this.row.set} time`, traces);
    await draw(
      this.charts.distribution,
      traces,
      layoutOf({ hovermode: "closest", xaxis, yaxis, margin: WIDE_MARGIN }),
      `No measurement of this step has ${this.row.set} times.`,
    );
  }

  /** A run's line: its side's colour, and a dash of its own; grey where the figure does not count. */
  line(run, shape = "linear") {
    const of = colours();
    if (this.row.runs.find((one) => one.run === run.name)?.left_out) {
      const line = { color: of.grey, dash: "dot", width: 1.2, shape };
      return { type: "scatter", mode: "lines", name: `${run.name}, left out`, line };
    }
    const place = this.data[run.side].findIndex((one) => one.name === run.name);
    const line = {
      color: run.side === "a" ? of.blue : of.orange,
      dash: DASHES[place % DASHES.length],
      width: 1.8,
      shape,
    };
    return { type: "scatter", mode: "lines", name: run.name, line };
  }
}

/** The row to begin with: one that is worse, if any is; else one that can differ, as a paced step's rate cannot. */
export function firstRow(rows) {
  const has = (row) => row.a !== null && row.b !== null;
  const paced = new Set(rows.filter((row) => row.set === "response" && !row.is_rate && has(row)).map((row) => row.key));
  const canDiffer = (row) => (paced.has(row.key) ? row.metric === "overall_service_us_p99" : row.is_rate);
  const wanted = [(row) => row.regression, (row) => row.outcome === "worse", (row) => has(row) && canDiffer(row), has];
  return wanted.map((is) => rows.findIndex(is)).find((place) => place >= 0) ?? 0;
}

/** The later runs are B: the newest three of six and more, else half of them. */
function sidesByTime(runs, ids) {
  const start = new Map(runs.map((run) => [run.id, Date.parse(run.start_utc)]));
  const sorted = [...ids].sort((one, other) => (start.get(one) ?? 0) - (start.get(other) ?? 0));
  const after = sorted.length >= 2 * NEWEST ? NEWEST : Math.floor(sorted.length / 2);
  return [sorted.slice(0, sorted.length - after), sorted.slice(sorted.length - after)];
}

function routeOf(sides, limit) {
  return `#/compare/${[...sides.map(listed), ...(limit ? [encodeURIComponent(limit)] : [])].join("/")}`;
}

function amount(row, value) {
  return (row.is_rate ? count : latency)(value);
}

/** A side's figure; in brackets where all its runs were left out as invalid. */
function side(row, value, invalid) {
  return marked(amount(row, value ?? invalid), (value ?? invalid) === value ? "" : "invalid", "invalid: not compared");
}

function intervalOf(row) {
  return row.interval?.map(changeText).join(" to ") ?? "-";
}

const SIGNS = { worse: "▼ ", better: "▲ " };

function outcome(row) {
  const kind = row.regression ? "regression" : row.outcome.replaceAll(" ", "-");
  return el("span", { class: `compared-outcome ${kind}` }, prose(`${SIGNS[row.outcome] ?? ""}${row.outcome}`));
}
