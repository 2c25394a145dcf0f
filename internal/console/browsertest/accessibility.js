// What a page lacks for people who cannot see, point or tell colours apart: a list of sentences, each with the element.
// The numbers in brackets are the success criteria of WCAG 2.2; level A and AA, as far as a program can tell.
(() => {
  const faults = [];
  const fault = (element, text) => faults.push(`${describe(element)}: ${text}`);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const words = (text) => (text || "").replace(/\s+/g, " ").trim();

  function describe(element) {
    if (!element || element === document.documentElement) return "html";
    const id = element.id ? `#${element.id}` : "";
    const name = element.getAttribute("name") ? `[name=${element.getAttribute("name")}]` : "";
    return `${element.localName}${id}${name} “${words(element.textContent).slice(0, 40)}”`;
  }

  function shown(element) {
    if (!element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true })) return false;
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
  }
  // Text that is for screen readers alone is clipped to nothing, or is outside until it has the focus.
  const clipped = (element) => element.closest("*") && ancestors(element).some((e) => {
    const box = e.getBoundingClientRect(), style = getComputedStyle(e);
    return (style.position === "absolute" || style.position === "fixed") && (box.width <= 1 || box.height <= 1 || box.right <= 0 || box.bottom + scrollY <= 0);
  });
  function ancestors(element) {
    const list = [];
    for (let e = element; e instanceof Element; e = e.parentElement) list.push(e);
    return list;
  }
  const hidden = (element) => element.closest("[aria-hidden=true]") !== null;

  // The name that is read out, as far as pages like these need the algorithm (accname 1.2).
  function nameOf(element) {
    const by = element.getAttribute("aria-labelledby");
    if (by) return words(by.split(/\s+/).map((id) => document.getElementById(id)?.textContent).join(" "));
    const own = words(element.getAttribute("aria-label"));
    if (own) return own;
    if (element.labels?.length) {
      const label = words([...element.labels].map(inner).join(" "));
      if (label) return label;
    }
    if (element.matches("input[type=submit], input[type=button], input[type=reset]")) return words(element.value);
    if (element.matches("img, input[type=image], area")) return words(element.alt);
    if (element.matches("svg")) return words(element.querySelector("title")?.textContent);
    if (element.matches("a, button, summary, th, h1, h2, h3, h4, h5, h6, label, [role=button], [role=link], [role=tab]")) {
      const text = inner(element);
      if (text) return text;
    }
    return words(element.getAttribute("title"));
  }
  function inner(element) {
    let text = "";
    for (const node of element.childNodes) {
      if (node.nodeType === Node.TEXT_NODE) text += node.data;
      else if (node.nodeType === Node.ELEMENT_NODE && node.getAttribute("aria-hidden") !== "true" && !node.matches("select, textarea"))
        text += " " + (node.getAttribute("aria-label") || (node.matches("img") ? node.alt : node.matches("input") ? "" : inner(node)));
    }
    return words(text);
  }

  function document_() {
    const root = document.documentElement;
    if (!/^[a-z]{2,3}(-|$)/i.test(root.lang)) fault(root, "has no lang (3.1.1)");
    if (!words(document.title)) fault(root, "has no title (2.4.2)");
    const viewport = document.querySelector("meta[name=viewport]");
    if (!viewport) fault(root, "has no viewport for phones (1.4.10)");
    else if (/user-scalable\s*=\s*(no|0)|maximum-scale\s*=\s*[01](\D|$)/.test(viewport.content)) fault(root, "cannot be zoomed (1.4.4)");
    const seen = new Set();
    for (const e of all("[id]")) {
      if (seen.has(e.id)) fault(e, `its id ${e.id} is there twice (1.3.1)`);
      seen.add(e.id);
    }
    for (const attribute of ["aria-labelledby", "aria-describedby", "aria-controls", "aria-owns", "aria-errormessage", "for", "headers"])
      for (const e of all(`[${attribute}]`))
        for (const id of e.getAttribute(attribute).split(/\s+/))
          if (!document.getElementById(id)) fault(e, `its ${attribute} names ${id}, which is not there (1.3.1)`);
  }

  function headings() {
    const list = all("h1, h2, h3, h4, h5, h6").filter((h) => shown(h) && !hidden(h));
    const first = list.filter((h) => h.localName === "h1");
    if (first.length !== 1) fault(document.documentElement, `has ${first.length} h1, not one (1.3.1)`);
    let level = 0;
    for (const h of list) {
      const own = Number(h.localName[1]);
      if (own > level + 1) fault(h, `a heading of level ${own} follows one of level ${level} (1.3.1)`);
      if (!inner(h)) fault(h, "is an empty heading (2.4.6)");
      level = own;
    }
  }

  const landmark = "main, nav, aside, [role=main], [role=navigation], [role=banner], [role=contentinfo], [role=search], [role=complementary], body > header, body > footer";
  function landmarks() {
    const mains = all("main, [role=main]").filter(shown);
    if (mains.length !== 1) fault(document.documentElement, `has ${mains.length} main, not one (1.3.1)`);
    const navs = all("nav").filter(shown);
    const names = navs.map(nameOf);
    if (navs.length > 1 && (names.includes("") || new Set(names).size < names.length)) fault(navs[1], "several nav need names of their own (1.3.1)");
    for (const node of texts(document.body)) {
      const e = node.parentElement;
      if (shown(e) && !e.closest(`${landmark}, a[href^="#"], dialog, [role=dialog], [role=alert], [role=status], [aria-live]`)) fault(e, "is in no landmark (1.3.1)");
    }
    const first = all("a[href], button, input, select, textarea, summary, [tabindex]").find((e) => e.tabIndex >= 0 && !e.disabled && e.type !== "hidden");
    const target = first?.matches('a[href^="#"]') && first.hash.length > 1 && document.getElementById(decodeURIComponent(first.hash.slice(1)));
    if (navs.length > 0 && !target) fault(first ?? document.body, "nothing skips to the content: the first link does not lead to it (2.4.1)");
  }

  const focusable = "a[href], button, input:not([type=hidden]), select, textarea, summary, iframe, [tabindex], [contenteditable]";
  const roles = new Set(("alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox complementary contentinfo definition deletion dialog document " +
    "emphasis feed figure form generic grid gridcell group heading img insertion link list listbox listitem log main marquee math menu menubar menuitem meter navigation none note option paragraph " +
    "presentation progressbar radio radiogroup region row rowgroup rowheader search searchbox separator slider spinbutton status strong subscript superscript switch tab table tablist tabpanel " +
    "term textbox time timer toolbar tooltip tree treegrid treeitem").split(" "));
  function controls() {
    for (const e of all(focusable)) {
      if (!e.checkVisibility({ visibilityProperty: true }) || e.disabled) continue;
      if (hidden(e)) fault(e, "has the focus and is hidden from readers (4.1.2)");
      if (e.tabIndex > 0) fault(e, `is taken out of order by tabindex ${e.tabIndex} (2.4.3)`);
      if (e.matches("[tabindex]:not(a, button, input, select, textarea, summary)")) {
        // What scrolls may have the focus, and then has a name and says what it is; so may a time that says more with it.
        if (e.tabIndex >= 0 && !(nameOf(e) && (e.hasAttribute("role") || e.matches("figure, th"))) && !(e.localName === "time" && inner(e))) fault(e, "has the focus without a role and a name (4.1.2)");
      } else if (!nameOf(e)) fault(e, "has no name (4.1.2)");
      if (e.matches("input:not([type=submit], [type=button], [type=reset], [type=image]), select, textarea") && !e.labels?.length && !e.hasAttribute("aria-label") && !e.hasAttribute("aria-labelledby"))
        fault(e, "has no label (3.3.2)");
      if (e.matches("input[type=password]") && !e.autocomplete) fault(e, "does not say what a password manager may fill in (1.3.5)");
      if (e.parentElement.closest("a[href], button")) fault(e, "is within another control (4.1.2)");
    }
    for (const group of all("fieldset")) if (!words(group.querySelector("legend")?.textContent)) fault(group, "has no legend (1.3.1)");
    for (const e of all("[role]")) for (const role of e.getAttribute("role").split(/\s+/)) if (!roles.has(role)) fault(e, `there is no role ${role} (4.1.2)`);
    const links = new Map();
    for (const a of all("main a[href]").filter(shown)) {
      const name = nameOf(a).toLowerCase();
      if (["here", "click here", "more", "link", "read more"].includes(name)) fault(a, "does not say where it leads (2.4.4)");
      links.set(name, a);
    }
  }

  function images() {
    for (const e of all("img, area, input[type=image]")) {
      if (!e.hasAttribute("alt")) fault(e, `${e.getAttribute("src")} has no alt (1.1.1)`);
      if (e.localName === "img" && shown(e) && !(e.complete && e.naturalWidth > 0)) fault(e, `${e.getAttribute("src")} does not show`);
      if (/\.(png|svg|jpe?g|gif)$/i.test(e.alt)) fault(e, "its alt is the name of a file (1.1.1)");
    }
    for (const e of all("svg")) if (!hidden(e) && !(e.getAttribute("role") === "img" && nameOf(e)) && !e.closest("[role=img]")) fault(e, "is a picture without role=img and a name (1.1.1)");
    for (const e of all("[role=img]")) if (!nameOf(e)) fault(e, "is a picture without a name (1.1.1)");
    for (const e of all("figure")) if (!e.querySelector("figcaption") && !e.hasAttribute("aria-label")) fault(e, "has no figcaption (1.1.1)");
  }

  function tables() {
    for (const table of all("table")) {
      if (table.matches("[role=presentation], [role=none]")) continue;
      if (!words(table.caption?.textContent) && !table.hasAttribute("aria-label") && !table.hasAttribute("aria-labelledby")) fault(table, "has no caption (1.3.1)");
      const heads = all("th", table);
      if (heads.length === 0) fault(table, "has no header cells (1.3.1)");
      for (const th of heads) {
        if (!nameOf(th)) fault(th, `an empty header cell of “${words(table.caption?.textContent)}” (1.3.1)`);
        if (!["col", "row", "colgroup", "rowgroup"].includes(th.scope)) fault(th, "does not say whether it is of a column or of a row (1.3.1)");
      }
    }
    for (const li of all("li")) if (!li.parentElement.matches("ul, ol, menu, [role=list]")) fault(li, "is an item of no list (1.3.1)");
    for (const list of all("ul, ol")) for (const child of list.children) if (!child.matches("li, script, template")) fault(child, "is in a list and no item of it (1.3.1)");
    for (const e of all("dt, dd")) if (!e.parentElement.matches("dl, dl > div")) fault(e, "is in no list of definitions (1.3.1)");
  }

  function* texts(root) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (walker.currentNode.data.trim() && !walker.currentNode.parentElement.closest("script, style, noscript, template, title, desc, option, datalist")) yield walker.currentNode;
  }

  // Colours as they are painted: whatever CSS says, the canvas turns into red, green, blue and alpha.
  const canvas = Object.assign(document.createElementNS("http://www.w3.org/1999/xhtml", "canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const painted = new Map();
  function colour(css) {
    if (!painted.has(css)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = css;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      painted.set(css, [r, g, b, a / 255]);
    }
    return painted.get(css);
  }
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  // Relative luminance and contrast as WCAG 2.2 defines them.
  const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  function contrast(a, b) {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  }

  const page = () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches && /dark/.test(getComputedStyle(document.documentElement).colorScheme);
    return dark ? [18, 18, 18, 1] : [255, 255, 255, 1];
  };
  // What lies behind an element, its own background included: null where a picture does.
  const grounds = new Map();
  function behind(element) {
    if (!(element instanceof Element)) return page();
    if (!grounds.has(element)) {
      const style = getComputedStyle(element), below = behind(element.parentElement);
      grounds.set(element, below && style.backgroundImage === "none" ? over(colour(style.backgroundColor), below) : null);
    }
    return grounds.get(element);
  }
  const opacities = new Map();
  function opacity(element) {
    if (!(element instanceof Element)) return 1;
    if (!opacities.has(element)) opacities.set(element, opacity(element.parentElement) * Number(getComputedStyle(element).opacity));
    return opacities.get(element);
  }

  // Within a picture text lies on whatever was painted there before it.
  function behindInPicture(text, svg) {
    let below = behind(svg);
    const box = text.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    for (const e of all("rect, path, circle, polygon, ellipse", svg)) {
      if (e.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_PRECEDING || e.closest("defs, clipPath, mask")) continue;
      const style = getComputedStyle(e), at = e.getBoundingClientRect();
      if (style.fill === "none" || !/^(rgb|color|#)/.test(style.fill) || x < at.left || x > at.right || y < at.top || y > at.bottom) continue;
      const matrix = e.getScreenCTM()?.inverse();
      if (below && matrix && e.isPointInFill?.(new DOMPoint(x, y).matrixTransform(matrix))) {
        const [r, g, b, a] = colour(style.fill);
        below = over([r, g, b, a * Number(style.fillOpacity) * Number(style.opacity)], below);
      }
    }
    return below;
  }

  function legible(element, css, text, least, below = behind(element)) {
    if (!below) return fault(element, "lies on a picture: its contrast cannot be told (1.4.3)");
    const [r, g, b, a] = colour(css);
    const ratio = contrast(over([r, g, b, a * opacity(element)], below), below);
    if (ratio < least - 0.005) fault(element, `${text} has a contrast of ${ratio.toFixed(2)}, less than ${least} (${least === 3 && text === "its edge" ? "1.4.11" : "1.4.3"})`);
  }
  function enough(style) {
    const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
    return size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
  }
  function contrasts() {
    for (const node of texts(document.body ?? document.documentElement)) {
      const e = node.parentElement;
      if (!shown(e) || clipped(e) || e.closest(":disabled, [aria-disabled=true]")) continue;
      const style = getComputedStyle(e), svg = e.closest("svg");
      if (svg) legible(e, style.fill, "its text", enough(style), behindInPicture(e, svg));
      else legible(e, style.color, "its text", enough(style));
    }
    for (const e of all("input:not([type=hidden], [type=checkbox], [type=radio], [type=file]), textarea, select")) {
      if (!shown(e) || e.disabled) continue;
      const style = getComputedStyle(e);
      legible(e, style.color, "its value", enough(style));
      if (e.placeholder) legible(e, getComputedStyle(e, "::placeholder").color, "its placeholder", enough(style));
      edge(e, style);
    }
  }
  // A field is told from what surrounds it by its edge or by its ground.
  function edge(e, style) {
    if (e.matches("[type=submit], [type=button], [type=reset], [type=image]")) return;
    const outside = behind(e.parentElement), inside = behind(e);
    if (!outside || (inside && contrast(inside, outside) >= 3)) return;
    if (parseFloat(style.borderTopWidth) === 0 && parseFloat(style.borderBottomWidth) === 0) return fault(e, "has no edge (1.4.11)");
    legible(e, style.borderBottomColor, "its edge", 3, outside);
  }

  // Links within sentences are told from the words around them by more than a colour.
  function links() {
    for (const a of all("p a[href], li a[href], dd a[href]")) {
      const around = [...a.parentElement.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && /\p{L}{2,}/u.test(n.data));
      if (!around || !shown(a)) continue;
      const style = getComputedStyle(a);
      if (!style.textDecorationLine.includes("underline") && parseFloat(style.borderBottomWidth) === 0) fault(a, "is told from its sentence by a colour alone (1.4.1)");
    }
  }

  // A finger hits what has 24 by 24 pixels, or that much room around its middle (2.5.8). Links in a sentence are exempt.
  function targets() {
    const list = all("a[href], button, input:not([type=hidden]), select, textarea, summary, [role=button]").filter((e) => shown(e) && !clipped(e) && !e.disabled && !inSentence(e));
    const boxes = list.map(reach);
    list.forEach((e, i) => {
      const box = boxes[i];
      if (box.width >= 24 && box.height >= 24) return;
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
      const near = boxes.findIndex((other, j) => j !== i && !list[j].contains(e) && !e.contains(list[j]) && distance(x, y, other) < (other.width < 24 || other.height < 24 ? 0 : 12) ||
        j !== i && (other.width < 24 || other.height < 24) && Math.hypot(x - other.x - other.width / 2, y - other.y - other.height / 2) < 24);
      if (near >= 0) fault(e, `is ${Math.round(box.width)}×${Math.round(box.height)} pixels and close to ${describe(list[near])} (2.5.8)`);
    });
  }
  // What hits an element: of a box to tick its label too.
  function reach(e) {
    const boxes = [e, ...(e.matches("[type=checkbox], [type=radio]") ? e.labels : [])].map((part) => part.getBoundingClientRect());
    const [left, top] = [Math.min(...boxes.map((b) => b.left)), Math.min(...boxes.map((b) => b.top))];
    return new DOMRect(left, top, Math.max(...boxes.map((b) => b.right)) - left, Math.max(...boxes.map((b) => b.bottom)) - top);
  }
  const distance = (x, y, box) => Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
  const inSentence = (e) => e.matches("a") && getComputedStyle(e).display === "inline" && [...e.parentElement.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && /\p{L}{2,}/u.test(n.data));

  function inline() {
    for (const e of all("[style]")) if (!e.closest("svg")) fault(e, "has a style of its own, which the policy forbids");
    for (const e of all("*")) for (const { name } of e.attributes) if (/^on/.test(name)) fault(e, `has a script of its own in ${name}, which the policy forbids`);
  }

  if (document.documentElement.localName === "svg") {
    contrasts();
    return faults;
  }
  for (const check of [document_, headings, landmarks, controls, images, tables, contrasts, links, targets, inline]) check();
  return [...new Set(faults)];
})();
