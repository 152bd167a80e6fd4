// The run at a glance: every measurement of every step, why it is not valid, and latency against load; of a run of one
// step its charts over time.

import { badge, el, fill, marked, prose } from "./dom.js";
import { figureText, halfWidth } from "./figures.js";
import { LoadChart } from "./load_chart.js";
import { Overview } from "./overview.js";
import { RoundsChart } from "./rounds_chart.js";

const MARKS = "Do not use figures in [brackets]; figures in (parentheses) are of a part of the hosts or of the time.";

export class SummaryView {
  /** `open(number)`: show a step. */
  constructor(model, node, open) {
    this.model = model;
    this.open = open;
    this.node = node;
    this.table = el("section", { class: "panel", "aria-label": "steps" });
    this.load = new LoadChart(model);
    this.rounds = new RoundsChart(model);
    this.only = el("div"); // the charts of the only step
    this.charts = null;
    fill(node, this.table, this.rounds.node, this.load.node, this.only);
  }

  close() {
    this.load.close();
    this.rounds.close();
    this.charts?.close();
  }

  async show(what) {
    if (what !== "figures") {
      this.showTable();
      await this.rounds.show();
      await this.load.show();
    }
    await this.showOnly(what);
  }

  async showOnly(what) {
    const isOnly = this.model.document.steps.length === 1;
    if (isOnly) this.charts ??= new Overview(this.model, this.only);
    else if (this.charts) {
      this.charts.close();
      this.charts = null;
      fill(this.only);
    }
    await this.charts?.show(what);
  }

  showTable() {
    const { steps, headline, rounds } = this.model.document;
    const rows = steps.flatMap(rowsOf);
    const differing = partsThatDiffer(rows.map((one) => one.load).filter(Boolean));
    const columns = ["step", ...(differing.length ? ["load"] : []), "verdict", ...headline.map((one) => one.title)];
    const isMarked = rows.some((one) => ["invalid", "partial"].some((word) => hasVerdict(one, word)));
    fill(
      this.table,
      rounds.tables.map((one) =>
        figuresTable(one, `the result of ${one.caption.split(":")[0]}`, sentence(one.caption)),
      ),
      el(
        "div",
        { class: "scroll whole", tabindex: 0, role: "region", "aria-label": "steps and their figures" },
        el(
          "table",
          { class: "summary" },
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              columns.map((title, place) => {
                const isFigure = place >= columns.length - headline.length;
                return el("th", { scope: "col", class: isFigure ? "number" : title === "load" && "load" }, title);
              }),
            ),
          ),
          el(
            "tbody",
            {},
            rows.flatMap((one) => this.lines(one, differing, columns.length)),
          ),
        ),
      ),
      isMarked ? el("p", { class: "quiet" }, MARKS) : null,
      steps.filter((step) => step.search).map(probesOf),
    );
  }

  lines(row, differing, width) {
    const { step, load, verdict, metrics } = row;
    const name = el(
      "button",
      { type: "button", class: "link", onclick: () => this.open(step.number), title: "its charts" },
      row.name,
    );
    const cells = [
      el("th", { scope: "row" }, el("span", { class: "quiet" }, `${step.number} `), name),
      differing.length
        ? el(
            "td",
            { class: "load" },
            differing
              .map((part) => load?.[part])
              .filter(Boolean)
              .join(", "),
          )
        : null,
      el("td", {}, badge(verdict)),
      this.model.document.headline.map((metric) =>
        el("td", { class: "number" }, marked(figureText(metric, metrics), row[metric.verdict]), plusMinus(metric, row)),
      ),
    ];
    const words = [row.why, ...row.advice].filter(Boolean);
    const told = words.length
      ? el("td", { class: "text why", colspan: width }, el("div", {}, prose(words.map(sentence).join(" "))))
      : null;
    return [el("tr", { class: told && "told" }, cells.flat()), told && el("tr", { class: "why" }, told)].filter(
      Boolean,
    );
  }
}

/** A row for each measurement; of a step without one, its name and its state. */
function rowsOf(step) {
  const word = step.state === "ended" ? step.verdict : step.state;
  if (!step.measurements.length)
    return [{ step, name: step.name, verdict: word, metrics: {}, load: null, why: "", advice: [], half_widths: {} }];
  return step.measurements.map((one) => ({ step, ...one }));
}

/** The probes of a step that searched for a load; the last column is in words. */
function probesOf(step) {
  const label = `probes of step ${step.number} ${step.name}`;
  const words = [el("b", {}, sentence(label)), ` ${sentence(step.search.caption)}`];
  return figuresTable(step.search, label, words, [step.search.titles.length - 1]);
}

/** A table of texts that are figures, but for the columns `inWords`. */
function figuresTable({ titles, rows, note }, label, words, inWords = [0]) {
  const side = (place) => (inWords.includes(place) ? "" : "number");
  return el(
    "div",
    { class: "search" },
    el("p", {}, words),
    el(
      "div",
      { class: "scroll whole", tabindex: 0, role: "region", "aria-label": label },
      el(
        "table",
        { class: "probes" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            titles.map((title, place) => el("th", { scope: "col", class: side(place) }, title.replace("+-", "±"))),
          ),
        ),
        el(
          "tbody",
          {},
          rows.map((cells) =>
            el(
              "tr",
              {},
              cells.map((text, place) => el("td", { class: side(place) }, text)),
            ),
          ),
        ),
      ),
    ),
    note ? el("p", { class: "quiet" }, sentence(note)) : null,
  );
}

function hasVerdict(row, word) {
  return [row.rate_verdict, row.service_verdict, row.response_verdict].includes(word);
}

/** The parts of a load in which the rows differ; what is alike stands above the table. */
function partsThatDiffer(loads) {
  const parts = [...new Set(loads.flatMap((one) => Object.keys(one)))];
  return parts.filter((part) => new Set(loads.map((one) => one[part])).size > 1);
}

function plusMinus(metric, row) {
  const half = metric.name === "overall_iops" ? halfWidth(row) : "";
  return half ? el("span", { class: "quiet half" }, ` ${half}`) : null;
}

function sentence(words) {
  const text = words[0].toUpperCase() + words.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
