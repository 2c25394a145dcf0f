// Adds the viewer's local time to times in UTC. Shows the page anew every few seconds while somebody
// looks at it: fetches the page's own address and swaps the parts (data-part, with an id) that differ.
// Without script the page is whole, and stands still.
"use strict";
(() => {
  // Adds the local time to each time below an element; nothing where it equals UTC.
  const local = (root) => {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (isNaN(at) || at.getTimezoneOffset() === 0) continue;
      const shown = at.toLocaleString("en-GB", {
        weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
      });
      const exact = time.querySelector("span");
      if (exact) exact.append(` · ${shown}, your time`);
      else {
        const here = document.createElement("small");
        here.className = "here";
        here.textContent = ` ${shown}, your time`;
        time.append(here);
      }
    }
  };
  local(document);

  const main = document.querySelector("main[data-live]");
  if (!main) return;
  const pause = 1000 * Number(main.dataset.live);
  const said = document.getElementById("live");
  let timer = 0, failures = 0;

  const tell = (text) => {
    if (said.textContent !== text) said.textContent = text;
    said.hidden = text === "";
  };

  // What somebody types in, or has selected, is left alone.
  const busy = (part) => {
    const at = document.activeElement;
    const selected = document.getSelection();
    return part.contains(at) && at.matches("input, select, textarea") ||
      selected && !selected.isCollapsed && part.contains(selected.anchorNode);
  };

  // A way back to the element that has the focus, in a part that is swapped.
  const focused = (part) => {
    const at = document.activeElement;
    if (!at || at === part || !part.contains(at)) return null;
    const all = [...part.querySelectorAll(at.tagName)];
    return { tag: at.tagName, place: all.indexOf(at) };
  };

  const swap = (old, next) => {
    if (old.innerHTML === next.innerHTML || busy(old)) return;
    const at = focused(old);
    const boxes = [...old.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
    const open = [...old.querySelectorAll("details")].map((d) => d.open);
    old.replaceChildren(...next.childNodes);
    old.querySelectorAll("details").forEach((d, i) => { if (i in open) d.open = open[i]; });
    old.querySelectorAll(".scroll").forEach((box, i) => { if (boxes[i]) [box.scrollLeft, box.scrollTop] = boxes[i]; });
    if (at) old.querySelectorAll(at.tag)[at.place]?.focus({ preventScroll: true });
  };

  const update = async () => {
    const answer = await fetch(location.href, { headers: { "X-Capper-Live": "1" }, credentials: "same-origin", redirect: "error" });
    if (answer.status === 401) {
      tell("The session has ended: load the page again to sign in.");
      return false;
    }
    if (!answer.ok) throw new Error(answer.statusText);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    local(next);
    for (const part of next.querySelectorAll("[data-part][id]")) {
      const old = document.getElementById(part.id);
      if (old) swap(old, part);
    }
    const shown = next.querySelector("footer"), footer = document.querySelector("footer");
    if (shown && footer) footer.innerHTML = shown.innerHTML;
    return true;
  };

  const tick = async () => {
    timer = 0;
    if (document.hidden) return;
    try {
      if (!await update()) return;
      failures = 0;
      tell("");
    } catch {
      failures++;
      tell("The service cannot be reached. This page shows its state at the time below. Trying again.");
    }
    plan();
  };

  const plan = () => {
    if (!timer && !document.hidden) timer = setTimeout(tick, Math.min(pause * 2 ** Math.min(failures, 3), 60000));
  };

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    timer = 0;
    if (!document.hidden) tick();
  });
  plan();
})();
