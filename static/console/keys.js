"use strict";
// Keys that lead through a page: "/" to the search, j and k from row to row, "?" explains. A row is reached
// by focus, so that Enter opens it, a screen reader reads it, and news that arrive leave it where it is.
{
  // Whoever dictates, or hits keys by accident, switches them off.
  const SWITCH = "keys";
  const on = () => localStorage.getItem(SWITCH) !== "off";

  // The row that was focused last in this tab: "back" from its page goes on from there.
  const LAST = "row";

  const FIELDS = "textarea, select, input:not([type='radio'], [type='checkbox'], [type='button'])";

  const search = () => document.querySelector("main input[type='search']");
  const help = () => document.getElementById("keys");

  const stops = () =>
    [...document.querySelectorAll("main :is(.row-link, #newer-link, #older-link)")].filter((stop) =>
      stop.checkVisibility(),
    );

  function go(step) {
    const all = stops();
    const here = all.indexOf(document.activeElement);
    const last = all.findIndex((stop) => stop.id === sessionStorage.getItem(LAST));
    const next = here < 0 ? Math.max(last, 0) : here + step;
    all[Math.min(Math.max(next, 0), all.length - 1)]?.focus();
  }

  const ACTS = {
    "/": () => {
      search()?.focus();
      search()?.select();
    },
    j: () => go(1),
    k: () => go(-1),
    "?": () => help()?.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.defaultPrevented || event.isComposing) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target === search() && key === "ArrowDown" && stops().length) {
      event.preventDefault();
      stops()[0].focus();
      return;
    }
    const act = on() && ACTS[key];
    if (!act || target.matches(FIELDS) || target.isContentEditable) return;
    if (document.querySelector("dialog[open]")) return;
    event.preventDefault();
    act();
  });

  document.addEventListener("focusin", (event) => {
    if (event.target.matches(".row-link")) sessionStorage.setItem(LAST, event.target.id);
  });

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-keys]")) return;
    const menu = event.target.closest("details");
    menu.open = false;
    menu.querySelector("summary").focus();
    help().showModal();
  });

  document.addEventListener("change", (event) => {
    if (event.target.id === "keys-on") localStorage.setItem(SWITCH, event.target.checked ? "on" : "off");
  });

  document.addEventListener("DOMContentLoaded", () => {
    const box = document.getElementById("keys-on");
    if (box) box.checked = on();
  });
}
