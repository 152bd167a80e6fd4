// What happened, in words.

import { counted, el, fill, table } from "./dom.js";
import { localTime, utcTime, zone } from "./format.js";

export class EventsView {
  constructor(model, node) {
    this.model = model;
    this.node = node;
    this.words = "";
    const search = el("input", {
      type: "search",
      "aria-label": "search events",
      placeholder: "kind, host or text",
      oninput: (event) => {
        this.words = event.target.value.toLowerCase();
        this.render();
      },
    });
    this.place = el("div");
    fill(node, el("div", { class: "bar" }, search), this.place);
  }

  async show(what) {
    if (what !== "figures") this.render();
  }

  render() {
    const events = this.model.document.events
      .filter((one) => `${one.kind} ${one.host} ${one.text}`.toLowerCase().includes(this.words))
      .reverse();
    if (!events.length) {
      fill(
        this.place,
        el(
          "p",
          { class: "empty" },
          this.words ? `No event contains “${this.words}”.` : "Nothing happened that is worth a line.",
        ),
      );
      return;
    }
    const steps = new Map(this.model.document.steps.map((one) => [one.number, one.name]));
    fill(
      this.place,
      table(
        `${counted(events.length, "event")}, the newest first; times in ${zone(events[0].utc)}`,
        [
          {
            title: "time",
            cell: (one) => el("time", { title: utcTime(one.utc) }, localTime(one.utc).slice(0, 19)),
          },
          { title: "step", cell: (one) => (one.step === null ? "" : `${one.step} ${steps.get(one.step) ?? ""}`) },
          { title: "kind", cell: (one) => one.kind },
          { title: "host", cell: (one) => one.host },
          { title: "what", class: "text", cell: (one) => one.text },
        ],
        events,
        { class: "events" },
      ),
    );
  }
}
