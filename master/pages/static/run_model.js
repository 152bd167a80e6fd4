// What the page knows of one run: the document, and the figures of the step and rollup instance that are shown.

import { addresses, AGAIN_MS, Missing } from "./source.js";
import { joinedColumns, unpackHistograms } from "./histogram.js";

const REST = 3; // times as long as the last drawing took: a live page leaves three quarters of a core to others

export class RunModel {
  constructor(source, id) {
    this.source = source;
    this.id = id;
    this.document = null;
    this.step = null; // the number of the one that is shown
    this.by = "all";
    this.instance = "all";
    this.series = null;
    this.zoom = { range: null }; // of the charts over the step's time
    this.columns = []; // of histograms
    this.group = 1;
    this.fault = ""; // why there are no histograms
    this.status = null; // of a running run, from its control socket
    this.unlinkedAt = null; // since when the server has not been reached, in unix seconds
    this.missedAt = null; // since when an answer is missing that a state needs, in unix seconds
    this.linkFault = ""; // why not
    this.isRemoved = false; // its folder is no longer there
    this.seen = null; // the newest state that was used
    this.waiting = null; // the newest state that was not
    this.isBusy = false;
    this.told_ms = 0; // how long the listeners took last, which draw
    this.isClosed = false;
    this.listeners = [];
    this.unfollow = () => {};
    this.look = () => !document.hidden && this.waiting && this.take(this.waiting);
  }

  /** `listener(what)`: "document", "figures" or "status" changed. */
  onchange(listener) {
    this.listeners.push(listener);
  }

  tell(what) {
    const begun = performance.now();
    if (!this.isClosed) for (const one of this.listeners) one(what);
    this.told_ms = performance.now() - begun;
  }

  async open(step) {
    this.document = await this.source.json(addresses.run(this.id));
    const numbers = this.document.steps.map((one) => one.number);
    this.isFollowingSteps = step === null && this.isRunning;
    this.step = numbers.includes(step) ? step : (numbers[numbers.length - 1] ?? null);
    await this.readFigures();
    if (this.source.isLive && this.isRunning) {
      document.addEventListener("visibilitychange", this.look);
      this.unfollow = this.source.follow(
        this.id,
        (state) => this.take(state),
        (isLinked) => {
          if (isLinked) this.linkFault = "";
          this.unlinkedAt = isLinked ? null : (this.unlinkedAt ?? Date.now() / 1000);
          this.tell("status");
          if (!isLinked) this.lookForIt();
        },
      );
    }
  }

  /** Whether the server knows the run, after the link broke or an answer was missing. */
  async lookForIt() {
    try {
      await this.source.json(addresses.run(this.id));
    } catch (error) {
      this.linkFault = error.message;
      if (error instanceof Missing) {
        this.isRemoved = true;
        this.unfollow();
      }
      this.tell("status");
    }
  }

  close() {
    this.isClosed = true;
    document.removeEventListener("visibilitychange", this.look);
    this.unfollow();
  }

  get isRunning() {
    return !this.isRemoved && ["running", "open"].includes(this.document.run.state);
  }

  get stepEntry() {
    return this.document.steps.find((one) => one.number === this.step) ?? null;
  }

  /** Show another step or rollup instance. */
  async choose({ step = this.step, by = this.by, instance = this.instance }) {
    const rollups = this.document.steps.find((one) => one.number === step)?.rollups ?? {};
    const exists = (rollups[by] ?? []).includes(instance);
    if (step !== this.step) this.zoom.range = null;
    const before = [this.step, this.by, this.instance];
    [this.step, this.by, this.instance] = [step, exists ? by : "all", exists ? instance : "all"];
    try {
      await this.readFigures();
    } catch (error) {
      [this.step, this.by, this.instance] = before;
      if (error instanceof Missing && this.source.isLive) return this.lookForIt();
      throw error;
    }
    this.tell("figures");
  }

  async readFigures() {
    if (this.step === null) return;
    const wanted = `${this.step} ${this.by} ${this.instance}`;
    const words = [this.id, this.step, this.by, this.instance, 0];
    const [series, packed] = await Promise.all([
      this.source.json(addresses.series(...words)),
      this.source.binary(addresses.histograms(...words)).catch((error) => error),
    ]);
    if (`${this.step} ${this.by} ${this.instance}` !== wanted) return;
    this.series = series;
    this.fault = packed instanceof Error ? packed.message : "";
    const unpacked = this.fault ? { columns: [], group: 1 } : unpackHistograms(packed);
    [this.columns, this.group] = [unpacked.columns, unpacked.group];
  }

  /** A new state from the server: only the newest counts while an older one is still worked on, in the rest after it,
   * or where nobody looks. */
  async take(state) {
    this.waiting = state;
    if (this.isBusy || document.hidden) return;
    this.isBusy = true;
    try {
      while (this.waiting && !this.isClosed && !document.hidden) {
        const next = this.waiting;
        this.waiting = null;
        await this.use(next).catch((error) => this.miss(next, error));
        await rest(REST * this.told_ms);
      }
    } finally {
      this.isBusy = false;
    }
  }

  /** No answer came for a state, which may be the last: say so, and read everything anew, soon or with the next one. */
  miss(state, error) {
    this.seen = null;
    if (error instanceof Missing) return this.lookForIt();
    this.linkFault = error.message;
    this.missedAt ??= Date.now() / 1000;
    this.tell("status");
    setTimeout(() => this.isClosed || this.seen || this.take(this.waiting ?? state), AGAIN_MS);
  }

  async use(state) {
    const isNewDocument = this.seen === null || state.doc !== this.seen.doc;
    if (isNewDocument) this.document = await this.source.json(addresses.run(this.id));
    this.status = state.status;
    if (isNewDocument && this.isFollowingSteps && state.step !== null && state.step !== this.step) {
      await this.choose({ step: state.step });
    } else if (isNewDocument) {
      await this.readFigures(); // rows change when a measurement is complete
    } else if (state.step === this.step && state.closed > (this.series?.subinterval.length ?? 0)) {
      await this.readAdded();
    }
    this.seen = state;
    this.missedAt = null;
    this.tell(isNewDocument ? "document" : "figures");
    if (state.ended) this.unfollow();
  }

  async readAdded() {
    const words = [this.id, this.step, this.by, this.instance];
    const from = this.series.subinterval.length;
    const [series, packed] = await Promise.all([
      this.source.json(addresses.series(...words, from)),
      this.source.binary(addresses.histograms(...words, from)),
    ]);
    if (series.from !== from) return this.readFigures();
    append(this.series, series);
    const unpacked = unpackHistograms(packed);
    if (unpacked.group !== this.group) return this.readFigures();
    this.columns = joinedColumns(this.columns, unpacked.columns);
  }
}

function rest(ms) {
  return new Promise((ready) => setTimeout(ready, ms));
}

function append(onto, added) {
  for (const [name, values] of Object.entries(added)) {
    if (Array.isArray(values)) onto[name].push(...values);
  }
  for (const [name, values] of Object.entries(added.metrics)) onto.metrics[name].push(...values);
}
