// The rollup instances of a type: a table that sorts, the outliers first, with a sparkline each.

import { addresses } from "./source.js";
import { begun } from "./charts.js";
import { badge, marked, choice, counted, el, fill, svg } from "./dom.js";
import { count, latency, percentText } from "./format.js";

const SPARK_WIDTH = 96;
const SPARK_HEIGHT = 22;
const FEWEST_TO_MARK = 4;
const TABLE_REFRESH_MS = 5000; // while it runs: every file of the type is read for it

export class InstancesView {
  constructor(model, node, choose) {
    this.model = model;
    this.node = node;
    this.choose = choose;
    this.sort = { key: "outlier", down: true };
    this.by = model.by;
    this.words = "";
    this.readAt = 0;
  }

  async show(what) {
    const types = Object.keys(this.model.stepEntry.rollups).filter((one) => one !== "all");
    if (!types.length) {
      fill(
        this.node,
        el(
          "p",
          { class: "empty" },
          "The plan has no rollups. With `rollups: [ host ]`, or port, serial, or any attribute of the LUNs, " +
            "each instance has figures of its own.",
        ),
      );
      return;
    }
    if (!types.includes(this.by)) this.by = types[0];
    if (
      what === "figures" &&
      this.answer &&
      this.step === this.model.step &&
      performance.now() - this.readAt < TABLE_REFRESH_MS
    )
      return;
    this.readAt = performance.now();
    this.step = this.model.step;
    const isNewest = begun(this);
    try {
      const answer = await this.model.source.json(addresses.instances(this.model.id, this.step, this.by));
      if (!isNewest()) return;
      this.answer = answer;
      this.render();
    } catch (error) {
      if (isNewest()) fill(this.node, this.bar(types), el("p", { class: "empty", role: "alert" }, error.message));
    }
  }

  bar(types) {
    const search = el("input", {
      type: "search",
      "aria-label": "search instances",
      placeholder: "instance",
      oninput: (event) => {
        this.words = event.target.value;
        this.renderTable();
      },
    });
    search.value = this.words;
    return el(
      "div",
      { class: "bar" },
      choice(
        "rollup",
        types.map((one) => [one, one]),
        this.by,
        (value) => {
          this.by = value;
          this.readAt = 0;
          this.show();
        },
      ),
      search,
    );
  }

  render() {
    const types = Object.keys(this.model.stepEntry.rollups).filter((one) => one !== "all");
    this.place ??= el("div");
    const outliers = this.answer.instances.filter((one) => one.outlier).length;
    const what = this.answer.measured ? "Figures of the measurement" : "Figures of the last subinterval";
    const known = this.answer.instances.filter((one) => one.z_iops !== null || one.z_p99 !== null).length;
    const mark =
      known < FEWEST_TO_MARK
        ? "There are too few to say which stands out."
        : `Marked: IOPS or p99 far from the median of the ${this.answer.instances.length} instances ` +
          `(robust z beyond ${this.answer.outlier_beyond}), and on the same side of it in ` +
          `nearly every subinterval (at least 12). ` +
          `Noise alone marks any in at most 1 of 100 steps, if it is independent ` +
          `from subinterval to subinterval.`;
    if (!this.node.contains(this.place))
      fill(this.node, this.bar(types), (this.note = el("p", { class: "quiet" })), this.place);
    fill(this.note, `${what}. ${outliers ? `${outliers} of ${this.answer.instances.length} stand out. ` : ""}${mark}`);
    this.renderTable();
  }

  columns() {
    const metric = (name) => (one) => one.metrics[name] ?? null;
    const headline = this.model.document.headline.map((one) => [
      one.name,
      one.title,
      metric(one.name),
      one.is_time ? latency : count,
      one.verdict,
    ]);
    return [
      ["instance", "instance", (one) => one.instance, null],
      [
        "outlier",
        "stands out",
        (one) => Math.max(Math.abs(one.z_iops ?? 0), Math.abs(one.z_p99 ?? 0)) + (one.outlier ? 1e6 : 0),
        null,
      ],
      ...headline.slice(0, 1),
      ["droop", "droop", (one) => one.droop_percent, percentText, "rate_verdict"],
      ...headline.slice(1),
      ["errors", "errors", metric("errors"), count],
    ];
  }

  renderTable() {
    const columns = this.columns();
    const [, , value] = columns.find(([key]) => key === this.sort.key);
    const direction = this.sort.down ? -1 : 1;
    const rows = this.answer.instances
      .filter((one) => one.instance.toLowerCase().includes(this.words.toLowerCase()))
      .sort((a, b) => direction * compared(value(a), value(b)) || compared(a.instance, b.instance));
    const head = columns.map(([key, title, , text]) => this.headCell(key, title, text !== null));
    const focused = document.activeElement?.dataset?.sort;
    const tail = this.answer.instances.some((one) => one.spark_p99.some((us) => us !== null)) ? "p99" : "mean";
    const body = rows.map((one) => this.row(one, columns, tail));
    fill(
      this.place,
      el(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": `instances of ${this.by}` },
        el(
          "table",
          { class: "instances" },
          el("caption", {}, `${counted(rows.length, "instance")} of ${this.by}`),
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              head,
              el("th", { scope: "col" }, "IOPS over time"),
              el("th", { scope: "col" }, `${tail} over time`),
            ),
          ),
          el("tbody", {}, body),
        ),
      ),
    );
    if (focused) this.place.querySelector(`[data-sort="${focused}"]`)?.focus();
  }

  headCell(key, title, isNumber) {
    const isSorted = this.sort.key === key;
    const order = isSorted ? (this.sort.down ? "descending" : "ascending") : "none";
    const arrow = isSorted ? (this.sort.down ? " ▼" : " ▲") : "";
    const sort = () => {
      this.sort = { key, down: isSorted ? !this.sort.down : key !== "instance" };
      this.renderTable();
    };
    return el(
      "th",
      { scope: "col", "aria-sort": order, class: isNumber && "number" },
      el("button", { type: "button", class: "sort", "data-sort": key, onclick: sort }, title + arrow),
    );
  }

  row(one, columns, tail) {
    const show = () => this.choose({ by: this.by, instance: one.instance });
    const isChosen = this.model.by === this.by && this.model.instance === one.instance;
    const name = el(
      "th",
      { scope: "row" },
      el(
        "button",
        {
          type: "button",
          class: "link",
          "aria-pressed": String(isChosen),
          title: "show this instance in every chart",
          onclick: show,
        },
        one.instance,
      ),
      " ",
      one.verdict && one.verdict !== "valid" ? badge(one.verdict) : null,
    );
    const why = [
      ["IOPS", one.z_iops, one.outlier_iops],
      ["p99", one.z_p99, one.outlier_p99],
    ]
      .filter(([, , isMarked]) => isMarked)
      .map(([what, z]) => `${what} ${z > 0 ? "high" : "low"} (z ${z.toFixed(1)})`);
    const out = el("td", {}, one.outlier ? el("span", { class: "outlier" }, `▲ ${why.join(", ")}`) : "");
    const cells = columns
      .slice(2)
      .map(([, , value, text, verdict]) => el("td", { class: "number" }, marked(text(value(one)), one[verdict])));
    return el(
      "tr",
      { class: isChosen ? "chosen" : "" },
      name,
      out,
      cells,
      el("td", {}, sparkline(one.spark_iops, count)),
      el("td", {}, sparkline(one[`spark_${tail}`], latency)),
    );
  }
}

function compared(a, b) {
  if (a === null || b === null) return (a === null ? -1 : 0) - (b === null ? -1 : 0);
  return typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
}

/** A line of the values, from 0 to the highest; gaps where there are none. */
function sparkline(values, text) {
  const known = values.filter((one) => one !== null);
  if (!known.length) return el("span", { class: "quiet" }, "-");
  const high = Math.max(...known, 1e-12);
  const step = SPARK_WIDTH / Math.max(values.length - 1, 1);
  let path = "";
  values.forEach((one, place) => {
    if (one === null) return;
    const isGap = place === 0 || values[place - 1] === null;
    const y = SPARK_HEIGHT - 2 - (one / high) * (SPARK_HEIGHT - 4);
    path += `${isGap ? "M" : "L"}${(place * step).toFixed(1)},${y.toFixed(1)}`;
  });
  const label = `from ${text(known[0])} to ${text(known[known.length - 1])}, highest ${text(high)}`;
  return svg(
    "svg",
    {
      class: "spark",
      viewBox: `0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`,
      width: SPARK_WIDTH,
      height: SPARK_HEIGHT,
      role: "img",
      "aria-label": label,
    },
    svg("title", {}, label),
    svg("path", { d: path }),
  );
}
