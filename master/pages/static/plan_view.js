// What was run, and where: the plan, the hosts and the LUNs, with what differs between them first.

import { counted, el, fill, table } from "./dom.js";
import { plain, sizeText } from "./format.js";

const MOST_ROWS = 1000;
const SIZES = ["size", "memory"]; // in bytes

export class PlanView {
  constructor(model, node) {
    this.model = model;
    this.node = node;
  }

  async show(what) {
    if (what === "figures") return;
    const { document: found } = this.model;
    fill(
      this.node,
      section("Hosts", found.hosts, found.hosts_differ, [
        "host",
        "hostname",
        "address",
        "kernel",
        "cpu_model",
        "cores",
        "memory",
      ]),
      section("LUNs", found.luns, found.luns_differ, ["host", "path", "kind", "size", "block"]),
      el(
        "section",
        { class: "panel", "aria-label": "plan" },
        el("h2", {}, "Plan"),
        el("pre", { tabindex: 0, "aria-label": "plan" }, found.plan_text || "The run's folder has no plan.yaml."),
      ),
      method(),
    );
  }
}

function section(title, rows, differing, first) {
  const names = rows.length ? Object.keys(rows[0]) : [];
  const leading = [...new Set([...first.filter((one) => names.includes(one)), ...differing])];
  const columns = [...leading, ...names.filter((one) => !leading.includes(one))].filter(
    (one) => rows.some((row) => row[one]) || first.includes(one),
  );
  const words = !rows.length
    ? "None are known yet."
    : differing.length
      ? `They differ in ${differing.map((one) => one.replaceAll("_", " ")).join(", ")}.`
      : rows.length > 1
        ? "They do not differ."
        : "";
  return el(
    "section",
    { class: "panel", "aria-label": title },
    el("h2", {}, title),
    el("p", {}, words),
    rows.length
      ? table(
          counted(rows.length, title === "LUNs" ? "LUN" : "host"),
          columns.map((name) => ({
            title: name.replaceAll("_", " "),
            class: differing.includes(name) ? "differs" : "",
            cell: (row) => (SIZES.includes(name) ? sizeText(row[name]) : plain(row[name])),
          })),
          rows.slice(0, MOST_ROWS),
        )
      : null,
  );
}

function method() {
  const words = [
    "Percentiles are of merged histograms of all I/Os, never means of percentiles; " +
      "each is within 1/128 of the I/O of that rank, and blank where fewer than 10 I/Os lie beyond it.",
    "Service time is from submission to completion. " +
      "Response time is from when the I/O fell due, so it includes the wait during a stall; " +
      "it is blank where the load is not paced.",
    "Do not use figures in [brackets]: the verdict says why. Those in (parentheses) are of a part of the test. " +
      "A measurement is valid, partial (true, but of less than the plan asked for), failed (true, and a threshold " +
      "is missed) or invalid (no measurement of what was asked for).",
    "Subintervals in which the test host itself was disturbed do not count; " +
      "whether it was follows only from what it measures about itself.",
  ];
  return el(
    "section",
    { class: "panel", "aria-label": "method" },
    el("h2", {}, "Method"),
    el(
      "ul",
      {},
      words.map((one) => el("li", {}, one)),
    ),
  );
}
