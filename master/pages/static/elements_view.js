// Is it the array? What connectors say of each element, beside the LUNs' service times, on the overview's time axis.

import { Missing, addresses } from "./source.js";
import { TimeGroup, begun, discard, latencyAxis, layoutOf, timeLine } from "./charts.js";
import { el, fill, grouped, refill, table } from "./dom.js";
import { shapesOfPhases } from "./phase_shapes.js";
import { colours } from "./theme.js";

const DASHES = ["solid", "dash", "dot", "longdash"];
const SHOWN = 100; // rows of the table of correlations

export class ElementsView {
  constructor(model, node) {
    this.model = model;
    this.metric = null; // of the chart of one metric
    this.isClosed = false;
    this.group = new TimeGroup(model.zoom);
    this.note = el("p");
    this.bar = el("div", { class: "bar" });
    this.choiceNote = el("p", { class: "quiet" });
    this.correlations = el("div");
    this.gathers = el("div");
    const names = ["times", "busy", "elements"];
    this.charts = Object.fromEntries(names.map((name) => [name, el("div", { class: `chart ${name}` })]));
    for (const name of names) this.group.add(this.charts[name]);
    this.empty = el("p", { class: "empty" });
    this.panels = el(
      "div",
      {},
      this.section("Is it the array?", this.note),
      this.section("Service time of the LUNs, and times that connectors report", this.charts.times),
      this.section("Busy figures of single elements, the highest first", this.charts.busy),
      this.section("One metric, element by element", this.bar, this.choiceNote, this.charts.elements),
      this.section("Correlation with the LUNs' mean service time", this.correlations),
      this.section("Gathers", this.gathers),
    );
    fill(node, this.empty, this.panels);
    this.panels.hidden = true;
  }

  section(title, ...content) {
    const chart = content[content.length - 1];
    if (chart.classList.contains("chart")) {
      chart.setAttribute("role", "img");
      chart.setAttribute("aria-label", `${title}, a chart`);
    }
    return el("section", { class: "panel", "aria-label": title }, el("h2", {}, title), content);
  }

  close() {
    this.isClosed = true;
    Object.values(this.charts).forEach(discard);
  }

  async show() {
    const { source, id, step, by, instance, series } = this.model;
    if (!series) return;
    const isNewest = begun(this);
    const found = await source.json(addresses.elements(id, step, by, instance)).catch(orSaid);
    if (this.isClosed || !isNewest() || step !== this.model.step) return;
    const said =
      found.said ?? (found.families.length || found.gathers.length ? "" : "No connector took part in this step.");
    fill(this.empty, said);
    this.empty.hidden = !said;
    this.panels.hidden = Boolean(said);
    if (said) return;
    const { start, length_s: length } = series;
    this.middles = start.map((one, place) => one + (length[place] ?? 0) / 2);
    if (start.length) this.group.spans(start[0], start[start.length - 1] + (length[length.length - 1] ?? 0));
    this.shapes = shapesOfPhases(this.model);
    fill(this.note, found.saturation.sentence);
    await Promise.all([this.showTimes(found), this.showBusy(found), this.showChoice(found)]);
    this.showCorrelations(found);
    this.showGathers(found);
  }

  layout(more) {
    return layoutOf({ shapes: this.shapes, uirevision: `${this.model.step}`, ...more });
  }

  /** A line of an answer; subintervals that the page has not got yet are left out. */
  line(name, { at, values }, place) {
    const known = at.map((one, where) => [one, values[where]]).filter(([one]) => one < this.middles.length);
    const of = colours();
    const palette = [of.blue, of.orange, of.green, of.purple, of.red, of.grey];
    const dash = DASHES[Math.floor(place / palette.length) % DASHES.length];
    return timeLine(
      literal(name),
      known.map(([one]) => this.middles[one]),
      known.map(([, value]) => value),
      palette[place % palette.length],
      { dash },
    );
  }

  async showTimes({ times }) {
    const { metrics } = this.model.series;
    const own = [
      timeLine("LUNs, mean", this.middles, metrics.overall_service_us_mean, colours().ink, { width: 2.4 }),
      timeLine("LUNs, p99", this.middles, metrics.overall_service_us_p99, colours().ink, { width: 1.2, dash: "dot" }),
    ];
    const lines = [...own, ...times.map((one, place) => this.line(one.metric, one, place))];
    await this.group.draw(this.charts.times, lines, this.layout({ yaxis: latencyAxis("time", lines) }));
  }

  async showBusy({ busiest }) {
    const lines = busiest.map((one, place) => this.line(`${shortMetric(one.metric)} ${one.element}`, one, place));
    await this.drawLines(
      this.charts.busy,
      lines,
      { yaxis: { title: "%", range: [0, 105] } },
      "No element has a busy figure.",
    );
  }

  async showChoice({ families }) {
    const options = families.map((one) => [
      `${one.connector}: ${one.element} (${one.elements})`,
      one.metrics.map((metric) => [metric.name, metric.name]),
    ]);
    const all = families.flatMap((one) => one.metrics);
    if (!all.some((one) => one.name === this.metric))
      this.metric = (all.find((one) => one.is_busy) ?? all[0])?.name ?? null;
    refill(this.bar, [options, this.metric], () =>
      grouped("metric", options, this.metric, async (value) => {
        this.metric = value;
        await this.showElements(families);
      }),
    );
    await this.showElements(families);
  }

  async showElements(families) {
    const metric = this.metric;
    if (metric === null) return;
    const { source, id, step } = this.model;
    const found = await source.json(addresses.elementLines(id, step, metric)).catch(orSaid);
    if (this.isClosed || metric !== this.metric || step !== this.model.step) return;
    const lines = (found.lines ?? []).map((one, place) => this.line(one.element, one, place));
    const of = families.find((one) => one.metrics.some(({ name }) => name === metric));
    const notes = [found.said];
    if (found.elements > lines.length)
      notes.push(`The ${lines.length} of ${found.elements} elements with the highest mean.`);
    if (of.left_out_from !== null)
      notes.push(`There are too many values: those from subinterval ${of.left_out_from} on are left out.`);
    fill(this.choiceNote, notes.filter(Boolean).join(" "));
    const { unit } = of.metrics.find(({ name }) => name === metric);
    await this.drawLines(this.charts.elements, lines, { yaxis: { title: unit || "value", rangemode: "tozero" } });
  }

  /** Many lines: their names are in a column beside the chart where there is room for one. */
  async drawLines(node, lines, more, otherwise = "") {
    node.style.height = `${230 + (lines.length > 8 ? 12 * lines.length : 0)}px`;
    await this.group.draw(
      node,
      lines,
      this.layout({ showlegend: true, hovermode: lines.length > 8 ? "closest" : "x unified", ...more }),
      otherwise,
    );
  }

  showCorrelations({ correlations, correlations_total: total }) {
    const shown = correlations.slice(0, SHOWN);
    refill(this.correlations, [shown, total], () => [
      el(
        "p",
        { class: "quiet" },
        "Pearson's r over the subintervals under load in which both have a value, and their number n. " +
          "Near 1: both rise together, which is not yet a cause; " +
          "a busy figure that stays at its limit has none.",
      ),
      table(
        `The strongest ${shown.length} of ${total}`,
        [
          { title: "metric", cell: (one) => one.metric },
          { title: "element", cell: (one) => el("span", { class: "cut", title: one.element }, one.element) },
          { title: "r", number: true, cell: (one) => (one.r === null ? "-" : one.r.toFixed(2)) },
          { title: "n", number: true, cell: (one) => String(one.n) },
          { title: "of a workload's LUN", cell: (one) => (one.participating ? "yes" : "no") },
        ],
        shown,
        { class: "correlations" },
      ),
    ]);
  }

  showGathers({ gathers, missing, missing_total: total }) {
    refill(this.gathers, [gathers, missing], () => [
      table(
        "Gathers of each connector, by how they ended",
        [
          { title: "connector", cell: (one) => (one.host ? `${one.connector} of ${one.host}` : one.connector) },
          {
            title: "gathers",
            cell: (one) =>
              Object.entries(one.states)
                .map(([state, count]) => `${count} ${state.replace("_", " ")}`)
                .join(", "),
          },
        ],
        gathers,
      ),
      total
        ? table(
            "Without values: gaps in the lines" +
              (missing.length < total ? `; the newest ${missing.length} of ${total}` : ""),
            [
              { title: "subinterval", cell: (one) => String(one.subinterval) },
              { title: "connector", cell: (one) => (one.host ? `${one.connector} of ${one.host}` : one.connector) },
              { title: "state", cell: (one) => one.state.replace("_", " ") },
              { title: "why", class: "text", cell: (one) => one.why },
            ],
            missing,
          )
        : el("p", { class: "quiet" }, "Every gather gave values."),
    ]);
  }
}

/** What cannot be had becomes a sentence. */
function orSaid(error) {
  if (error instanceof Missing) return { said: error.message, families: [], gathers: [] };
  throw error;
}

/** "array.mp_busy_percent" as "array mp". */
function shortMetric(metric) {
  return metric.replace(/_?(busy|util\w*)_percent$/, "").replace(".", " ");
}

/** Plotly reads some markup in its texts: names are shown as they are. */
function literal(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
