"use strict";
// What the server cannot do: keep time passing on the page, put news in without disturbing anybody,
// say when the news stops coming. Everything else is server-rendered.
{
  // --- time: the server's clock, worded as organizations/console/words.py does ---------------------

  const serverNow = document.querySelector('meta[name="server-now"]');
  let ahead = serverNow ? Date.parse(serverNow.content) - Date.now() : 0;
  let frozenAt = null; // while the connection is lost, time stands still
  let heardAt = Date.now();

  const now = () => frozenAt ?? Date.now() + ahead;

  function agoWords(ms) {
    const seconds = Math.max(Math.floor(ms / 1000), 0);
    if (seconds >= 86400) return `${Math.floor(seconds / 86400)} d ago`;
    if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ago`;
    if (seconds >= 60) return `${Math.floor(seconds / 60)} min ago`;
    return `${seconds} s ago`;
  }

  function countdownWords(ms) {
    const total = Math.ceil(ms / 1000);
    const two = (n) => String(n).padStart(2, "0");
    const hours = Math.floor(total / 3600);
    const minutes = Math.floor(total / 60) % 60;
    return hours ? `${hours}:${two(minutes)}:${two(total % 60)}` : `${minutes}:${two(total % 60)}`;
  }

  // The zone that the server writes times in; UTC where it is not said.
  const zone = document.documentElement.dataset.zone;

  const clockFormat = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone || "UTC",
    timeStyle: "medium",
  });
  const offsetFormat = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone || "UTC",
    timeZoneName: "shortOffset",
  });

  function clockWords(at) {
    const parts = offsetFormat.formatToParts(at);
    const offset = parts.find((part) => part.type === "timeZoneName").value;
    return `${clockFormat.format(at)} ${offset.replace("GMT", "UTC").replace(/\+0$/, "")}`;
  }

  function write(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function tick() {
    if (document.hidden) return;
    for (const element of document.querySelectorAll("[data-ago]")) {
      write(element, agoWords(now() - Date.parse(element.dateTime)));
    }
    for (const element of document.querySelectorAll("[data-until]")) {
      const left = Date.parse(element.dataset.until) - now();
      write(element, left > 0 ? countdownWords(left) : element.dataset.past);
    }
    for (const element of document.querySelectorAll("[data-clock-after]")) {
      const input = document.getElementById(element.dataset.clockAfter);
      const seconds = Number(input.value);
      write(element, input.value && seconds > 0 ? clockWords(now() + seconds * 1000) : "–");
    }
    for (const line of document.querySelectorAll("svg[data-origin]")) moveNow(line);
  }

  // The axis of webhooks/console/schedule.py: linear up to its knee, logarithmic above.
  function moveNow(line) {
    const knee = Number(line.dataset.knee);
    const offset = Math.max((now() - Date.parse(line.dataset.origin)) / 1000, 0);
    const place = Math.log1p(offset / knee) / Math.log1p(Number(line.dataset.end) / knee);
    const x = `${(Math.min(place, 1) * 100).toFixed(2)}%`;
    line.querySelector("[data-now-mark]")?.setAttribute("x", x);
    line.querySelector("[data-now-edge]")?.setAttribute("x2", x);
  }

  setInterval(tick, 250);

  // --- news: put in by key, so that what did not change is not touched ------------------------------

  const PASSING = /(<(?:time|span)\b[^>]*\bdata-(?:ago|until)[^>]*>)[^<]*/g;
  const asServed = new WeakMap(); // element -> its HTML as the server wrote it, without passing time

  const served = (element) =>
    element.dataset.rev ?? element.outerHTML.replace(PASSING, "$1").replace(/\s+/g, " ");

  function remember(element) {
    if ("keyed" in element.dataset) for (const child of element.children) remember(child);
    else asServed.set(element, served(element));
  }

  function keepOpen(old, fresh) {
    for (const details of old.querySelectorAll("details[open][id]")) {
      fresh.querySelector(`#${CSS.escape(details.id)}`)?.setAttribute("open", "");
    }
  }

  // Somebody reads or points at the rows: new ones wait, and a button says how many.
  function held(body) {
    if (!body.dataset.hold || body.dataset.release) return false;
    return body.matches(":hover, :focus-within") || body.getBoundingClientRect().top < 0;
  }

  function reconcile(parent, incoming, added) {
    const hold = held(parent);
    const children = new Map([...parent.children].map((child) => [child.id, child]));
    const coming = new Set([...incoming.children].map((child) => child.id));
    for (const [id, child] of children) {
      child.classList.toggle("left", hold && !coming.has(id));
      if (!hold && !coming.has(id)) child.remove();
    }
    let waiting = 0;
    let place = parent.firstElementChild;
    for (const fresh of [...incoming.children]) {
      while (place?.classList.contains("left")) place = place.nextElementSibling;
      const old = children.get(fresh.id);
      if (!old && hold) waiting += 1;
      else if (!old) {
        remember(fresh);
        added.push(fresh);
        parent.insertBefore(fresh, place);
      } else {
        if (old !== place) parent.insertBefore(old, place);
        place = old.nextElementSibling;
        renew(old, fresh, added);
      }
    }
    if (parent.dataset.hold) showWaiting(parent, waiting);
  }

  function renew(old, fresh, added) {
    if ("keyed" in fresh.dataset && "keyed" in old.dataset) reconcile(old, fresh, added);
    else if (asServed.get(old) !== served(fresh)) {
      remember(fresh);
      keepOpen(old, fresh);
      old.replaceWith(fresh);
      added.push(fresh);
    }
  }

  function showWaiting(body, count) {
    delete body.dataset.release;
    const button = document.getElementById(body.dataset.hold);
    if (!button) return;
    button.hidden = !count;
    button.textContent = `${count} new`;
    // What waits is asked for again: the page does not show this revision yet.
    if (count) body.closest("[data-live]").dataset.behind = "";
    else delete body.closest("[data-live]").dataset.behind;
  }

  htmx.defineExtension("keyed", {
    isInlineSwap: () => false,
    handleSwap(style, target, fragment) {
      if (style !== "keyed") return false;
      const added = [];
      const announced = target.querySelector("[data-announce]")?.dataset.announce;
      reconcile(target, fragment, added);
      for (const element of added) element.classList.add("changed");
      const news = target.querySelector("[data-announce]")?.dataset.announce;
      if (news && news !== announced) say(news);
      tick();
      return added;
    },
  });

  // --- live: polls, their pauses, and their failures ------------------------------------------------

  let paused = false;

  function show() {
    const state = frozenAt ? "stale" : paused ? "paused" : "live";
    document.body.dataset.news = state;
    document.getElementById("pause")?.setAttribute("aria-pressed", String(paused));
  }

  const isLive = (element) => element?.matches?.("[data-live]");

  function refresh() {
    for (const element of document.querySelectorAll("[data-live]")) htmx.trigger(element, "refresh");
  }

  function lost() {
    if (frozenAt) return;
    frozenAt = heardAt + ahead;
    const banner = document.getElementById("stale");
    if (banner) {
      document.getElementById("stale-since").textContent = clockWords(frozenAt);
      banner.hidden = false;
    }
    show();
    tick();
  }

  function heard(xhr) {
    heardAt = Date.now();
    const server = Number(xhr.getResponseHeader("X-Server-Now"));
    if (server) ahead = server - heardAt;
    if (!frozenAt) return;
    frozenAt = null;
    document.getElementById("stale")?.setAttribute("hidden", "");
    show();
    tick();
  }

  document.addEventListener("htmx:configRequest", (event) => {
    const { elt, headers, formData } = event.detail;
    if (isLive(elt) && !("behind" in elt.dataset)) headers["X-Revision"] = elt.dataset.revision;
    if (!elt.matches("form[data-tidy]")) return;
    for (const [name, value] of [...formData]) if (!value) formData.delete(name);
    if (!formData.has("since") && !formData.has("until")) formData.delete("zone");
    // Leaving the search field says again what typing said: "back" must not stop there twice.
    const shown = new URLSearchParams(window.location.search);
    if (new URLSearchParams(formData).toString() === shown.toString()) event.preventDefault();
  });

  document.addEventListener("htmx:beforeRequest", (event) => {
    const { elt, requestConfig } = event.detail;
    const asked = requestConfig.triggeringEvent?.type === "refresh";
    if (isLive(elt) && !asked && (paused || document.hidden)) event.preventDefault();
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target } = event.detail;
    if (isLive(target) && xhr.status !== 200) event.detail.shouldSwap = false;
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    const { elt, xhr } = event.detail;
    if (!isLive(elt)) return;
    if (xhr.status === 200 || xhr.status === 204) heard(xhr);
    else lost();
    const revision = xhr.status === 200 && xhr.getResponseHeader("X-Revision");
    if (revision) elt.dataset.revision = revision;
  });

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    tick();
    if (!paused) refresh();
  });

  window.addEventListener("pageshow", (event) => {
    if (event.persisted) refresh();
  });

  // --- sheets, announcements, small conveniences ----------------------------------------------------

  let toastTimer = 0;

  function say(text, visibly = false) {
    const status = document.getElementById("status");
    status.textContent = text;
    status.classList.toggle("shown", visibly);
    clearTimeout(toastTimer);
    if (visibly) toastTimer = setTimeout(() => status.classList.remove("shown"), 6000);
  }

  const sheet = () => document.getElementById("sheet");

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target?.id !== "sheet") return;
    if (!sheet().open) sheet().showModal();
    tick();
  });

  document.addEventListener("acted", (event) => {
    const { message, open } = event.detail;
    say(message, true);
    if (open) {
      htmx.ajax("GET", open, { target: "#sheet", swap: "innerHTML" });
      refresh();
      return;
    }
    if (sheet().open) sheet().close();
    if (document.querySelector("[data-live]")) refresh();
    else window.location.reload();
  });

  // An act that failed for another reason than a refusal: nothing was done, or nobody knows.
  for (const failure of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(failure, (event) => {
      if (isLive(event.detail.elt)) return;
      say("The console did not answer. Look at the page again before you repeat it.", true);
    });
  }

  async function copy(button) {
    const text = document.getElementById(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      say("Copied.", true);
    } catch {
      say("The browser does not let this page copy.", true);
    }
  }

  // A filter is dropped by emptying its control, so that the rest of the page stays as it is.
  function drop(chip, event) {
    const form = document.querySelector("form[data-tidy]");
    const controls = form?.querySelectorAll(`[name="${chip.dataset.drop}"]`) ?? [];
    if (!controls.length || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    for (const control of controls) {
      if (control.type === "radio") control.checked = !control.value;
      else control.value = "";
    }
    document.querySelector(form.getAttribute("hx-target")).focus();
    form.dispatchEvent(new Event("change", { bubbles: true }));
  }

  // --- the time zone: a cookie, so that the server writes each page in it from the start ------------

  const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

  function chooseZone(name) {
    const secure = window.location.protocol === "https:" ? "; Secure" : "";
    const age = name ? 31_536_000 : 0;
    document.cookie = `zone=${name}; Path=/; Max-Age=${age}; SameSite=Lax${secure}`;
  }

  const somethingTyped = () =>
    [...document.querySelectorAll("main form[method='post'] :is(input, textarea)")].some(
      (field) => field.type !== "hidden" && field.value !== field.defaultValue,
    );

  function switchZone() {
    if (!zone && /^(Etc\/)?(UTC|GMT)$/.test(ownZone)) {
      say("The time zone of this browser is UTC.", true);
      return;
    }
    chooseZone(zone ? "" : ownZone);
    if (somethingTyped()) {
      say(`Times are in ${zone ? "UTC" : ownZone} from the next page on.`, true);
      return;
    }
    sessionStorage.setItem("focus", "zone");
    window.location.reload();
  }

  // Somebody travelled.
  if (zone && zone !== ownZone) chooseZone(ownZone);

  document.addEventListener("click", (event) => {
    const chip = event.target.closest("[data-drop]");
    if (chip) drop(chip, event);
    if (event.target.closest("#zone")) switchZone();
    const target = event.target.closest("[data-close], [data-pause], [data-copy], [aria-disabled='true'], #new-rows");
    if (target?.dataset.copy) copy(target);
    else if (target?.matches("[aria-disabled='true']")) event.preventDefault();
    else if (target && "close" in target.dataset && target.closest("dialog")) {
      event.preventDefault();
      target.closest("dialog").close();
    } else if (target?.dataset.pause) {
      paused = !paused;
      show();
      if (!paused) refresh();
    } else if (target?.id === "new-rows") {
      for (const body of document.querySelectorAll("[data-hold]")) body.dataset.release = "yes";
      window.scrollTo({ top: 0 });
      refresh();
    }
    if (event.target.matches("dialog")) event.target.close();
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });

  // A form that leads to another page is sent once.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-once]")) return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });

  document.addEventListener("DOMContentLoaded", () => {
    show();
    tick();
    document.getElementById(sessionStorage.getItem("focus"))?.focus();
    sessionStorage.removeItem("focus");
  });

  htmx.onLoad((element) => {
    const live = isLive(element) ? [element] : element.querySelectorAll("[data-live]");
    for (const region of live) for (const child of region.children) remember(child);
  });
}
