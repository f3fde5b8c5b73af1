// How a graph became kernels: what each pass of planning made, with the nodes that it changed marked.
import { stepsSection } from "./steps.js";
import { count, make } from "./words.js";

export function planningView(recording, open) {
  const plans = recording.plans ?? [], largest = plans.reduce((best, plan, n) => (plan.kernels > plans[best].kernels ? n : best), 0);
  const steps = make("div", { class: "panel" });
  const choice = make("select", { "aria-label": "which plan", id: "planning-plan", onchange: () => reveal(Number(choice.value)) },
    plans.map((plan, n) => make("option", { value: n }, `graph ${plan.graph}: ${count(plan.kernels, "kernel")}`)));
  const graph = make("button", { onclick: () => open("tensors", [plans[choice.value].graph]) }, "the graph");
  const kernels = make("button", { onclick: () => open("schedule", plans[choice.value].plans[0]) }, "its kernels");
  const element = make("section", {}, make("div", { class: "bar" }, plans.length ? [choice, graph, kernels] : ""), steps);
  let asked = -1;

  async function reveal(number) {
    asked = number;
    choice.value = number;
    kernels.disabled = !plans[number].plans.length;
    const found = await (await fetch(`plans/${number}.json`)).json();
    if (asked === number) steps.replaceChildren(stepsSection(found, "plan-"));
  }

  if (!plans.length) {
    steps.append(make("p", { class: "soft" }, "The recording has no plans: none could be planned again without its memory, " +
      "or the time for that (--seconds) was over."));
  }
  return { element, reveal, shown: () => asked < 0 && plans.length && reveal(largest) };
}
