// One run: its state, verdict and figures, its steps, and the views of the step that is chosen.

import { Missing, answered } from "./source.js";
import { badge, choice, el, fill, refill } from "./dom.js";
import { duration, shortTime, utcTime, zonedTime } from "./format.js";
import { bigFigures, verdictBlock } from "./figures.js";
import { RunModel } from "./run_model.js";
import { RunTrack } from "./run_track.js";
import { Overview } from "./overview.js";
import { ElementsView } from "./elements_view.js";
import { InstancesView } from "./instances_view.js";
import { DistributionView } from "./distribution_view.js";
import { SummaryView } from "./summary_view.js";
import { AddressView } from "./address_view.js";
import { SurfaceView } from "./surface_view.js";
import { EventsView } from "./events_view.js";
import { PlanView } from "./plan_view.js";
import { ControlPanel } from "./control_panel.js";

const OF_RUN = [
  ["summary", "Summary", SummaryView],
  ["events", "Events", EventsView],
  ["plan", "Plan and hosts", PlanView],
];
const OF_STEP = [
  ["overview", "Over time", Overview],
  ["instances", "Instances", InstancesView],
  ["distribution", "Distribution", DistributionView],
  ["address", "By address", AddressView],
  ["surface", "Surface", SurfaceView],
  ["elements", "Array and hosts", ElementsView],
];
const TABS = [...OF_RUN, ...OF_STEP];
const MOST_INSTANCES = 2000; // in a list to choose from

/** Show a run in a node; returns what ends it. `route`: {id, step, tab}. */
export function showRun(source, node, route, mayControl) {
  const view = new RunView(source, node, route, mayControl);
  view.open();
  return () => view.close();
}

class RunView {
  constructor(source, node, route, mayControl) {
    this.node = node;
    this.route = route;
    this.mayControl = mayControl;
    this.source = source;
    this.model = new RunModel(source, route.id);
    this.tab = route.tab; // "" until the run is known, for the view that it begins with
  }

  async open() {
    fill(this.node, el("p", { class: "empty", role: "status" }, "Loading the run ..."));
    try {
      await answered(
        () => this.model.open(this.route.step),
        (error) => this.complain(error.message),
        () => this.model.isClosed,
      );
    } catch (error) {
      this.complain(error instanceof Missing ? "There is no such run here." : error.message);
      return;
    }
    if (this.model.isClosed) return;
    if (!TABS.some(([name]) => name === this.tab)) this.tab = this.firstTab(this.route.step !== null);
    this.build();
    this.model.onchange((what) => this.changed(what));
    await this.showTab(this.tab);
  }

  /** The view of an address that names none. */
  firstTab(hasStep) {
    return hasStep || this.model.isRunning || !this.hasSummary ? "overview" : "summary";
  }

  /** Of fio's logs there is none: they have no verdicts. */
  get hasSummary() {
    return this.model.document.driven.length > 0 || this.model.document.steps.length > 1;
  }

  get isOfRun() {
    return OF_RUN.some(([name]) => name === this.tab);
  }

  /** The views beside the one that is shown: of the run, or of the step. */
  get offered() {
    const isOffered = {
      summary: this.hasSummary,
      elements: this.model.document.has_elements,
      address: Boolean(this.model.stepEntry?.by_address),
    };
    return (this.isOfRun ? OF_RUN : OF_STEP).filter(([name]) => isOffered[name] ?? true);
  }

  complain(words) {
    fill(
      this.node,
      el("p", { class: "empty", role: "alert" }, words),
      el("p", {}, el("a", { href: "#/" }, "All runs")),
    );
  }

  close() {
    this.model.close();
    this.track?.close();
    this.current?.close?.();
  }

  build() {
    this.head = el("header", { class: "run-head" });
    this.link = el("p", { class: "lost-link", role: "status" });
    this.track = new RunTrack(
      this.model,
      (step) => this.openStep(step),
      () => (this.isOfRun ? null : this.model.step),
    );
    this.steps = el("nav", { class: "steps", "aria-label": "steps" });
    this.figures = el("div", { class: "figures" });
    this.verdict = el("div");
    this.filter = el("div", { class: "bar" });
    this.content = el("div", { class: "content", id: "view", role: "tabpanel", tabindex: -1 });
    this.tabs = el("div", { class: "tabs", role: "tablist", onkeydown: (event) => this.key(event) });
    const isControlled = this.mayControl && this.model.isRunning;
    this.control = isControlled ? new ControlPanel(this.model, this.source) : null;
    fill(
      this.node,
      this.head,
      this.link,
      this.track.node,
      this.steps,
      this.figures,
      this.verdict,
      this.control?.node,
      this.tabs,
      this.filter,
      this.content,
    );
    this.showHead();
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const offered = this.offered;
    const at = offered.findIndex(([name]) => name === this.tab);
    const [name] = offered[(at + step + offered.length) % offered.length];
    this.showTab(name).then(() => document.getElementById(`tab-${name}`).focus());
  }

  async showTab(name) {
    this.tab = name;
    this.showChosen();
    this.verdict.hidden = name !== "overview"; // the other views begin at the top; the step's button has the word
    this.content.setAttribute("aria-labelledby", `tab-${name}`);
    this.remember();
    this.current?.close?.();
    const [, , View] = TABS.find(([one]) => one === name);
    const place = el("div"); // its own: an answer that comes after the view was left is drawn where nobody sees it
    fill(this.content, place);
    this.showFilter();
    if (this.model.step === null && !["plan", "events"].includes(name)) {
      this.current = null;
      fill(
        place,
        el(
          "p",
          { class: "empty" },
          this.model.isRunning
            ? "No step has begun yet: the run connects, discovers LUNs and creates files first."
            : "No step of this run began.",
        ),
      );
      return;
    }
    const open = name === "summary" ? (step) => this.openStep(step) : (chosen) => this.choose(chosen);
    this.current = new View(this.model, place, open);
    await this.current.show();
  }

  /** The tabs and the steps' buttons, with the chosen ones. */
  showChosen() {
    this.tabs.setAttribute("aria-label", this.isOfRun ? "views of the run" : "views of the step");
    refill(this.tabs, [this.offered.map(([name]) => name), this.tab], () => this.offered.map((one) => this.tabOf(one)));
    const { steps } = this.model.document;
    const known = steps.map((one) => [one.number, one.name, one.state, one.verdict]);
    refill(this.steps, [known, this.model.step, this.isOfRun], () => [
      this.runButton(),
      ...steps.map((one) => this.stepButton(one)),
    ]);
    this.figures.hidden = this.isOfRun;
    this.track.show();
  }

  tabOf([name, title]) {
    const isChosen = name === this.tab;
    return el(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-controls": "view",
        "aria-selected": String(isChosen),
        tabindex: isChosen ? 0 : -1,
        onclick: () => this.showTab(name),
      },
      title,
    );
  }

  remember() {
    const id = encodeURIComponent(this.model.id);
    const isAnyStep = this.isOfRun || this.model.step === null || (this.model.isFollowingSteps && this.model.isRunning);
    const step = isAnyStep ? "" : `/step/${this.model.step}`;
    const tab = this.tab === this.firstTab(!isAnyStep) ? "" : `/${this.tab}`;
    history.replaceState(null, "", `#/run/${id}${step}${tab}`);
  }

  /** The charts of a step, from a view of the whole run. */
  async openStep(step) {
    await this.choose({ step });
    if (this.isOfRun) await this.showTab("overview");
  }

  async choose(chosen) {
    if ("step" in chosen) this.model.isFollowingSteps = false;
    await this.model.choose(chosen);
  }

  async changed(what) {
    this.showHead();
    if (what === "status") return;
    this.showChosen();
    this.remember();
    this.showFilter();
    if (this.current) await this.current.show(what);
    else if (this.model.step !== null) await this.showTab(this.tab);
  }

  showHead() {
    const { run, outcome, driven } = this.model.document;
    document.title = `${run.run} - ivypy`;
    const started = Date.parse(run.start_utc) / 1000;
    fill(
      this.head,
      el("h1", {}, run.run),
      outcome ? el("p", { class: "outcome" }, outcome) : null,
      driven.length ? el("p", { class: "driven" }, driven.join(" · ")) : null,
      el(
        "p",
        { class: "facts" },
        badge(run.state),
        " ",
        badge(run.verdict),
        " ",
        el("time", { datetime: run.start_utc, title: utcTime(started) }, zonedTime(started)),
        " · ",
        duration(this.length(started)),
        " · ",
        `${run.hosts.length} host${run.hosts.length === 1 ? "" : "s"}`,
        run.plan ? ` · ${run.plan}` : null,
        this.remaining(),
        this.sentence(),
      ),
    );
    fill(this.link, this.linkSentence());
    this.track.show();
    bigFigures(this.model, this.figures);
    verdictBlock(this.model, this.verdict);
    this.control?.show();
  }

  linkSentence() {
    const { isRemoved, linkFault } = this.model;
    if (isRemoved)
      return (
        "This run was removed: its folder is no longer there, or can no longer be read. " +
        "What is shown is the last that arrived."
      );
    const since = this.model.unlinkedAt ?? this.model.missedAt;
    return since === null
      ? null
      : `Not connected since ${shortTime(since)}: what is shown is the last that arrived. ` +
          `${linkFault} Trying again ...`;
  }

  sentence() {
    return this.model.document.sentence
      ? el("span", { class: "sentence" }, ` · ${this.model.document.sentence}`)
      : null;
  }

  /** How long the run has gone on; the document of one that runs may be old. */
  length(started) {
    const { last } = this.model.status ?? {};
    return this.model.isRunning && last ? Date.parse(last.utc) / 1000 - started : this.model.document.run.length_s;
  }

  /** What runs, how far it has come, and when it ends. */
  remaining() {
    const last = this.model.status?.last;
    if (!last || !this.model.isRunning) return null;
    const end = Date.now() / 1000 + last.run_remaining_s;
    const where = `step ${last.step}, ${last.paused ? "paused" : last.phase}, subinterval ${last.number}`;
    return el(
      "span",
      { title: utcTime(end) },
      ` · ${where}, ${duration(last.step_remaining_s)} to go; the run ends at about ${shortTime(end).slice(0, 5)}`,
    );
  }

  runButton() {
    const open = () => this.showTab(this.hasSummary ? "summary" : "events");
    return el(
      "button",
      { type: "button", class: "step", "aria-pressed": String(this.isOfRun), onclick: open },
      "The run",
    );
  }

  stepButton(step) {
    const isChosen = step.number === this.model.step && !this.isOfRun;
    const word = step.state === "ended" ? step.verdict : step.state;
    return el(
      "button",
      {
        type: "button",
        class: "step",
        "aria-pressed": String(isChosen),
        onclick: () => this.openStep(step.number),
      },
      el("span", { class: "number" }, String(step.number)),
      " ",
      step.name,
      " ",
      badge(word),
    );
  }

  showFilter() {
    const rollups = this.model.stepEntry?.rollups ?? {};
    const offered = Object.keys(rollups).filter((one) => rollups[one].length); // a report may leave out a whole type
    const { by, instance } = this.model;
    const isOfStep = this.tab === "summary" && this.model.document.steps.length === 1; // which has its charts
    const has = isOfStep || ["overview", "elements", "distribution", "address", "surface"].includes(this.tab);
    const isOffered = has && offered.length > 1;
    refill(this.filter, [isOffered, offered, rollups[by], by, instance], () =>
      isOffered ? this.filterOf(rollups, offered) : [],
    );
  }

  filterOf(rollups, offered) {
    const types = offered.map((one) => [one, one]);
    const { by, instance } = this.model;
    const instances = (rollups[by] ?? []).slice(0, MOST_INSTANCES).map((one) => [one, one]);
    return [
      choice("rollup", types, by, (value) => this.choose({ by: value, instance: rollups[value][0] })),
      by === "all" ? null : choice("instance", instances, instance, (value) => this.choose({ instance: value })),
      by === "all"
        ? null
        : el(
            "button",
            { type: "button", class: "small", onclick: () => this.choose({ by: "all", instance: "all" }) },
            "show all",
          ),
    ];
  }
}
