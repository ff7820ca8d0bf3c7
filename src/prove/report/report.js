"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;
  const ROW = 22;
  // Browsers refuse taller elements; longer lists are scrolled in proportion.
  const TALLEST = 8e6;
  const OVERSCAN = 6;

  // One letter a row in the data: its name, and the mark shown between the sides.
  const KINDS = {
    s: ["same", ""],
    n: ["numbering", "#"],
    b: ["barrier", "|"],
    a: ["added", "+"],
    r: ["removed", "\u2212"],
    m: ["moved", "\u2195"],
    c: ["constants", "\u2260"],
    g: ["grid", "\u229e"],
    i: ["bindings", "\u21c4"],
    k: ["kernel", "\u03bb"],
    o: ["other", "\u2022"],
  };
  const DISPATCH = 0, BARRIER = 1, BEGIN = 2, COMMIT = 3, WAIT = 4, WRITE = 5, READ = 6, FREE = 7;
  const BUFFER = 8, KERNEL = 9, META = 10, REFUSED = 11;
  const WORDS = ["dispatch", "barrier", "begin", "commit", "wait", "write", "read", "free",
                 "buffer", "kernel", "meta", "refused"];
  const ACCESS = ["r", "w", "rw"];

  const make = (tag, name, text) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const sideName = (side) => data.names[side];
  const many = (count, what) =>
    count.toLocaleString("en") + " " + what + (count === 1 ? "" : "s");

  // --- The theme

  const THEMES = ["auto", "light", "dark"];
  const setTheme = (theme) => {
    root.dataset.theme = theme;
    byId("theme").textContent = "Theme: " + theme;
  };
  byId("theme").addEventListener("click", () => {
    setTheme(THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % 3]);
    saveState();
    draw();
  });

  // --- One pair of streams

  class Stream {
    constructor(data) {
      this.data = data;
      this.kinds = data.kinds;
      this.a = Int32Array.from(data.a);
      this.b = data.b ? Int32Array.from(data.b) : this.a;
      this.events = data.events;
      this.sides = [data.side_a, data.side_b || data.side_a];
      this.count = this.kinds.length;
      this.locate();
      this.differences = [];
      this.totals = {};
      for (let row = 0; row < this.count; ++row) {
        const kind = this.kinds[row];
        this.totals[kind] = (this.totals[kind] || 0) + 1;
        if (kind !== "s") this.differences.push(row);
      }
      this.moves = new Map();
      for (let i = 0; i < data.moves.length; i += 2) {
        this.moves.set(data.moves[i], data.moves[i + 1]);
        this.moves.set(data.moves[i + 1], data.moves[i]);
      }
    }

    // Lines, groups and command buffers of both sides, and the columns of the strip: one for each
    // pair of groups that stand side by side.
    locate() {
      const n = this.count;
      this.line = [new Int32Array(n), new Int32Array(n)];
      this.group = [new Int32Array(n), new Int32Array(n)];
      this.order = [new Int32Array(n), new Int32Array(n)];
      this.commands = [new Int32Array(n), new Int32Array(n)];
      this.sizes = [[0], [0]];
      this.first = [[], []];  // By group: the row of its first dispatch.
      this.column = new Int32Array(n).fill(-1);
      this.columns = [];
      [this.a, this.b].forEach((stream, side) => {
        let line = 1, group = 0, inside = false, command = 0, order = 0;
        const sizes = this.sizes[side];
        for (let row = 0; row < n; ++row) {
          const event = stream[row] < 0 ? null : this.events[stream[row]];
          if (event) {
            ++line;
            if (event[0] === BEGIN) { ++command; order = 0; inside = true; sizes[++group] = 0; }
            if (event[0] === BARRIER) sizes[++group] = 0;
            if (event[0] === DISPATCH) {
              if (++sizes[group] === 1) this.first[side][group] = row;
              this.order[side][row] = ++order;
            }
          }
          this.line[side][row] = line;
          this.group[side][row] = group;
          this.commands[side][row] = inside ? command : 0;
          if (event && event[0] === COMMIT) inside = false;
        }
      });
      let last = null;
      for (let row = 0; row < n; ++row) {
        const in_a = this.isDispatch(0, row), in_b = this.isDispatch(1, row);
        if (!in_a && !in_b) continue;
        const ga = this.group[0][row], gb = this.group[1][row];
        if (!last || ga !== last.ga || gb !== last.gb) {
          last = { ga, gb, row, a: [], b: [] };
          this.columns.push(last);
        }
        this.column[row] = this.columns.length - 1;
        if (in_a) last.a.push(row);
        if (in_b) last.b.push(row);
      }
    }

    event(side, row) {
      const index = side === 0 ? this.a[row] : this.b[row];
      return index < 0 ? null : this.events[index];
    }
    isDispatch(side, row) {
      const event = this.event(side, row);
      return event !== null && event[0] === DISPATCH;
    }
    buffer(side, id) { return this.sides[side].buffers[id] || [0, "", ""]; }
    kernel(side, id) { return this.sides[side].kernels[id] || ["?", "", "", "", 0]; }
    bufferName(side, id) {
      const label = this.buffer(side, id)[2];
      return label ? label : "#" + id;
    }
    access(index) {
      const [mode, buffer, begin, end] = this.data.accesses[index];
      return { word: ACCESS[mode >> 1], exact: (mode & 1) === 1, buffer, begin, end };
    }
  }

  // --- State

  const data = JSON.parse(byId("data").textContent);
  const streams = data.streams;
  const built = new Map();
  const state = { part: 0, kernel: "", buffer: "", diffs: false, all: false, row: -1 };
  let stream = null;
  let shown = new Int32Array(0);  // The rows that pass the filters.
  let passes = new Uint8Array(0);  // By row: the kernel and buffer filters.

  const readState = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    state.part = Math.max(0, Math.min(streams.length - 1, Number(given.get("part")) || 0));
    state.kernel = given.get("kernel") || "";
    state.buffer = given.get("buffer") || "";
    state.diffs = given.get("diffs") === "1";
    state.all = given.get("all") === "1";
    state.row = given.has("row") ? Number(given.get("row")) || 0 : -1;
    setTheme(THEMES.includes(given.get("theme")) ? given.get("theme") : "auto");
    return given;
  };
  const saveState = () => {
    const kept = new URLSearchParams();
    if (state.part) kept.set("part", state.part);
    if (state.kernel) kept.set("kernel", state.kernel);
    if (state.buffer) kept.set("buffer", state.buffer);
    if (state.diffs) kept.set("diffs", "1");
    if (state.all) kept.set("all", "1");
    if (state.row >= 0) kept.set("row", state.row);
    if (root.dataset.theme !== "auto") kept.set("theme", root.dataset.theme);
    const text = kept.toString();
    try {
      history.replaceState(null, "", text ? "#" + text : "#");
    } catch (refused) {
      // Some viewers show pages that have no address to change.
    }
  };

  // --- Filters

  const eventMatches = (side, event, kernel, buffer, exact) => {
    if (!event) return false;
    if (kernel) {
      const names = event[0] === DISPATCH || event[0] === KERNEL;
      if (!names || !stream.kernel(side, event[1])[0].toLowerCase().includes(kernel)) return false;
    }
    if (!buffer) return true;
    const named = (id) => exact ? "#" + id === buffer
                                : stream.buffer(side, id)[2].toLowerCase().includes(buffer);
    if (event[0] === DISPATCH) {
      for (let i = 7; i < event.length; ++i) {
        if (named(stream.access(event[i]).buffer)) return true;
      }
      return false;
    }
    return event[0] >= WRITE && event[0] <= BUFFER && named(event[1]);
  };

  const applyFilters = () => {
    const kernel = state.kernel.trim().toLowerCase();
    const buffer = state.buffer.trim().toLowerCase();
    const exact = buffer.startsWith("#");
    const filtered = kernel !== "" || buffer !== "";
    // Many rows show one event: each is asked once.
    const known = [new Int8Array(stream.events.length), new Int8Array(stream.events.length)];
    const matches = (side, index) => {
      if (index < 0) return false;
      if (known[side][index] === 0) {
        known[side][index] =
          eventMatches(side, stream.events[index], kernel, buffer, exact) ? 1 : -1;
      }
      return known[side][index] === 1;
    };
    passes = new Uint8Array(stream.count);
    const rows = [];
    for (let row = 0; row < stream.count; ++row) {
      const kind = stream.kinds[row];
      const word = (stream.event(0, row) || stream.event(1, row))[0];
      if (filtered && !matches(0, stream.a[row]) && !matches(1, stream.b[row])) continue;
      passes[row] = 1;
      if (state.diffs && kind === "s") continue;
      if (!state.all && kind === "s" && !filtered && (word > COMMIT)) continue;
      rows.push(row);
    }
    shown = Int32Array.from(rows);
    const height = Math.min(shown.length * ROW, TALLEST);
    byId("spacer").style.height = height + "px";
    byId("rows").setAttribute("aria-rowcount", String(shown.length));
    byId("empty").hidden = shown.length > 0;
  };

  // --- The list

  const list = byId("rows");
  const scaled = () => shown.length * ROW > TALLEST;
  const topOf = (index) => {
    if (!scaled()) return index * ROW;
    const room = Math.max(1, shown.length - list.clientHeight / ROW);
    return index / room * (TALLEST - list.clientHeight);
  };
  const firstShown = () => {
    if (!scaled()) return list.scrollTop / ROW;
    const room = Math.max(1, shown.length - list.clientHeight / ROW);
    return list.scrollTop / Math.max(1, TALLEST - list.clientHeight) * room;
  };
  // Where a row stands in the list, or where it would.
  const indexOf = (row) => {
    let low = 0, high = shown.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (shown[middle] < row) low = middle + 1; else high = middle;
    }
    return low;
  };

  const rangeText = (begin, end) => "[" + begin + "," + end + ")";
  const fillText = (cell, side, event) => {
    switch (event[0]) {
      case DISPATCH: {
        cell.append(make("b", "", stream.kernel(side, event[1])[0]));
        cell.append(make("span", "dim", "  " + event.slice(2, 5).join("\u00d7") + "  "));
        for (let i = 7; i < event.length; ++i) {
          const at = stream.access(event[i]);
          cell.append(make("span", at.word === "r" ? "dim" : "writes", at.word),
                      " " + stream.bufferName(side, at.buffer) + rangeText(at.begin, at.end) +
                      (at.exact ? "  " : "?  "));
        }
        break;
      }
      case BEGIN: case COMMIT: case WAIT: case BARRIER:
        cell.append(WORDS[event[0]]);
        break;
      case WRITE: case READ:
        cell.append("host " + WORDS[event[0]] + " " + stream.bufferName(side, event[1]) +
                    rangeText(event[2], event[3]));
        break;
      case FREE:
        cell.append("free " + stream.bufferName(side, event[1]));
        break;
      case BUFFER: {
        const buffer = stream.buffer(side, event[1]);
        cell.append("buffer #" + event[1] + "  " + buffer[2] + "  ");
        cell.append(make("span", "dim", buffer[0] + " bytes, " + buffer[1]));
        break;
      }
      case KERNEL: {
        const kernel = stream.kernel(side, event[1]);
        cell.append("kernel ", make("b", "", kernel[0]));
        cell.append(make("span", "dim", "  digest " + kernel[1]));
        break;
      }
      case META:
        cell.append(event[1] + " = " + event[2]);
        break;
      case REFUSED:
        cell.append("refused " + event[1] + ": " + event[2]);
        break;
    }
  };

  const addSide = (node, side, row) => {
    const event = stream.event(side, row);
    const where = make("div", "where");
    const text = make("div", "text");
    if (!event) {
      text.classList.add("absent");
      text.setAttribute("aria-label", "absent");
    } else {
      const group = stream.group[side][row];
      const bar = make("i");
      let label = "";
      if (event[0] === DISPATCH) {
        bar.className = group % 2 ? "odd" : "even";
        const size = stream.sizes[side][group];
        if (size > 1 && stream.first[side][group] === row) label = "\u2225" + size;
      }
      where.append(bar, make("span", "group", label),
                   make("span", "number", String(stream.line[side][row])));
      if (event[0] === BEGIN) {
        text.append("command buffer " + stream.commands[side][row]);
      } else {
        fillText(text, side, event);
        text.title = text.textContent;
      }
    }
    node.append(where, text);
  };

  const makeRow = (index, top) => {
    const row = shown[index];
    const [kind, mark] = KINDS[stream.kinds[row]];
    const word = (stream.event(0, row) || stream.event(1, row))[0];
    const node = make("div", "row");
    if (word === BARRIER) node.classList.add("fence");
    if (word === BEGIN || word === COMMIT) node.classList.add("border");
    if (kind !== "same") {
      node.classList.add("kind-" + kind);
    } else if (word === DISPATCH && stream.group[0][row] % 2) {
      node.classList.add("band");
    }
    if (row === state.row) {
      node.classList.add("selected");
      node.setAttribute("aria-selected", "true");
    }
    node.id = "row-" + row;
    node.dataset.row = row;
    node.dataset.kind = kind;
    node.setAttribute("role", "row");
    node.setAttribute("aria-rowindex", String(index + 1));
    node.style.top = top + "px";
    addSide(node, 0, row);
    const middle = make("div", "mark", mark);
    middle.setAttribute("aria-label", kind);
    middle.title = kind;
    node.append(middle);
    addSide(node, 1, row);
    for (const cell of node.children) cell.setAttribute("role", "gridcell");
    return node;
  };

  const layer = byId("layer");
  const renderRows = () => {
    const first = firstShown();
    const from = Math.max(0, Math.floor(first) - OVERSCAN);
    const to = Math.min(shown.length, Math.ceil(first + list.clientHeight / ROW) + OVERSCAN);
    const nodes = [];
    for (let index = from; index < to; ++index) {
      nodes.push(makeRow(index, scaled() ? list.scrollTop + (index - first) * ROW : index * ROW));
    }
    layer.replaceChildren(...nodes);
    const selected = byId("row-" + state.row);
    if (selected) list.setAttribute("aria-activedescendant", selected.id);
    else list.removeAttribute("aria-activedescendant");
  };

  // --- The strip: a column a barrier-free group, the first side above the middle, the other below

  let columnWidth = 11;
  const colours = () => {
    const style = getComputedStyle(root);
    const read = (name) => style.getPropertyValue(name).trim();
    const out = { sheet: read("--sheet"), line: read("--line"), soft: read("--soft"), focus: read("--focus"),
                  same: read("--same-bar"), ink: read("--ink") };
    for (const [kind] of Object.values(KINDS)) if (kind !== "same") out[kind] = read("--" + kind);
    return out;
  };
  const surface = (canvas) => {
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    return { pen, width, height };
  };
  let stripFrom = 0;
  const currentRow = () => {
    if (shown.length === 0) return -1;
    const first = Math.floor(firstShown());
    const last = Math.min(shown.length - 1, first + Math.floor(list.clientHeight / ROW));
    const at = state.row < 0 ? -1 : indexOf(state.row);
    return at >= first && at <= last ? state.row : shown[Math.min(first, shown.length - 1)];
  };
  const columnNear = (row) => {
    for (let at = row; at < stream.count && at >= 0; ++at) {
      if (stream.column[at] >= 0) return stream.column[at];
    }
    return stream.columns.length - 1;
  };
  const drawStrip = () => {
    const { pen, width, height } = surface(byId("strip"));
    const colour = colours();
    columnWidth = Math.max(11, Math.min(26, Math.floor((width - 30) / stream.columns.length)));
    const most = Math.ceil((width - 30) / columnWidth);
    const current = columnNear(Math.max(0, currentRow()));
    stripFrom = Math.max(0, Math.min(current - (most >> 2), stream.columns.length - most + 1));
    const middle = height / 2, room = middle - 9;
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = colour.soft;
    pen.textBaseline = "middle";
    pen.fillText(sideName(0), 2, middle / 2 + 4, 23);
    pen.fillText(sideName(1), 2, middle + middle / 2 - 4, 23);
    pen.fillStyle = colour.line;
    pen.fillRect(26, middle - 0.5, width, 1);
    const cells = (rows, side, x) => {
      const size = Math.min(11, room / rows.length);
      const gap = size >= 4 ? 1.5 : 0;
      rows.forEach((row, place) => {
        pen.globalAlpha = passes[row] ? 1 : 0.18;
        pen.fillStyle = colour[KINDS[stream.kinds[row]][0]];
        const y = side === 0 ? middle - 3 - (place + 1) * size : middle + 3 + place * size;
        pen.fillRect(x, y, columnWidth - 3, Math.max(0.5, size - gap));
      });
      pen.globalAlpha = 1;
    };
    const stop = Math.min(stream.columns.length, stripFrom + most);
    for (let at = stripFrom; at < stop; ++at) {
      const column = stream.columns[at];
      const x = 28 + (at - stripFrom) * columnWidth;
      const next = stream.columns[at + 1];
      cells(column.a, 0, x);
      cells(column.b, 1, x);
      if (next) {
        pen.fillStyle = colour.line;
        if (next.ga !== column.ga) pen.fillRect(x + columnWidth - 2, 4, 1, middle - 6);
        if (next.gb !== column.gb) pen.fillRect(x + columnWidth - 2, middle + 2, 1, middle - 6);
      }
      if (at === current) {
        pen.strokeStyle = colour.focus;
        pen.lineWidth = 1.5;
        pen.strokeRect(x - 1.5, 2, columnWidth, height - 4);
      }
    }
  };
  byId("strip").addEventListener("click", (click) => {
    const column = stream.columns[stripFrom + Math.floor((click.offsetX - 28) / columnWidth)];
    if (column) select(column.row);
  });

  // --- The overview: where in the list the differences are

  const drawOverview = () => {
    const { pen, width, height } = surface(byId("overview"));
    const colour = colours();
    if (shown.length === 0) return;
    const tall = Math.min(1, shown.length * ROW / height);
    for (const row of stream.differences) {
      if (!passes[row]) continue;
      pen.fillStyle = colour[KINDS[stream.kinds[row]][0]];
      pen.fillRect(2, Math.floor(indexOf(row) / shown.length * height * tall), width - 4, 2);
    }
  };
  byId("overview").addEventListener("click", (click) => {
    const height = click.target.clientHeight;
    const index = Math.floor(click.offsetY / Math.min(height, shown.length * ROW) * shown.length);
    if (shown.length > 0) select(shown[Math.min(index, shown.length - 1)]);
  });

  // --- The detail of a row

  const numbers = (hex) => {
    const words = [];
    for (let at = 0; at + 8 <= hex.length && words.length < 16; at += 8) {
      const bytes = hex.slice(at, at + 8).match(/../g).map((byte) => parseInt(byte, 16));
      const view = new DataView(Uint8Array.from(bytes).buffer);
      const real = view.getFloat32(0, true);
      const size = Math.abs(real);
      const likely = size === 0 || (size > 1e-8 && size < 1e8);
      words.push(view.getUint32(0, true) + (likely && real !== 0 ? " (" + +real.toPrecision(6) + ")" : ""));
    }
    return words.join(", ");
  };
  const factsOf = (side, row) => {
    const event = stream.event(side, row);
    const facts = new Map();
    if (!event) return facts;
    facts.set("line", String(stream.line[side][row]));
    const command = stream.commands[side][row];
    if (command > 0) facts.set("command buffer", String(command));
    if (event[0] === DISPATCH) {
      const kernel = stream.kernel(side, event[1]);
      const group = stream.group[side][row];
      facts.set("dispatch", String(stream.order[side][row]));
      facts.set("group", "one of " + stream.sizes[side][group] + " between two barriers");
      facts.set("kernel", kernel[0]);
      facts.set("code", kernel[1]);
      facts.set("grid", event.slice(2, 5).join(" \u00d7 "));
      facts.set("workgroup", kernel[2]);
      if (kernel[3]) facts.set("specialised", kernel[3]);
      facts.set("shared", event[5] + " bytes, " + kernel[4] + " static");
      facts.set("constants", event[6] === "" ? "none" : event[6]);
      if (event[6] !== "") facts.set("as numbers", numbers(event[6]));
    } else {
      const cell = make("div");
      fillText(cell, side, event);
      facts.set("event", cell.textContent);
      if (event[0] === KERNEL) {
        const kernel = stream.kernel(side, event[1]);
        facts.set("workgroup", kernel[2]);
        if (kernel[3]) facts.set("specialised", kernel[3]);
        facts.set("shared", kernel[4] + " bytes");
      }
    }
    return facts;
  };
  const PLACES = new Set(["line", "dispatch", "command buffer", "group"]);
  const bindingsTable = (side, event, other) => {
    const table = make("table", "bindings-of");
    const head = make("tr");
    for (const word of ["", "", "buffer", "bytes"]) head.append(make("th", "", word));
    table.append(head);
    for (let i = 7; i < event.length; ++i) {
      const at = stream.access(event[i]);
      const line = make("tr");
      const differs = other !== null && other[i] !== event[i] ? "differs" : "";
      const label = stream.buffer(side, at.buffer)[2];
      line.append(make("td", "", String(i - 7)),
                  make("td", differs, at.word + (at.exact ? "" : "?")),
                  make("td", differs, "#" + at.buffer + (label ? " " + label : "")),
                  make("td", differs, rangeText(at.begin, at.end) + " " + (at.end - at.begin)));
      table.append(line);
    }
    return table;
  };
  const renderDetail = () => {
    const panel = byId("detail");
    const row = state.row;
    if (row < 0 || row >= stream.count) {
      panel.replaceChildren(byId("keys").content.cloneNode(true));
      return;
    }
    const kind = KINDS[stream.kinds[row]][0];
    const title = make("h2");
    title.append(make("span", "chip kind-" + kind, kind), " ",
                 WORDS[(stream.event(0, row) || stream.event(1, row))[0]]);
    const facts = [factsOf(0, row), factsOf(1, row)];
    const both = facts[0].size > 0 && facts[1].size > 0;
    const equal = both && [...facts[0]].every(([key, value]) =>
      PLACES.has(key) || facts[1].get(key) === value);
    const table = make("table", "facts");
    const head = make("tr");
    head.append(make("th"));
    for (const side of [0, 1]) {
      if (facts[side].size > 0) head.append(make("th", "", sideName(side)));
    }
    table.append(head);
    for (const key of new Set([...facts[0].keys(), ...facts[1].keys()])) {
      const line = make("tr");
      line.append(make("th", "", key));
      const differs = both && !PLACES.has(key) && facts[0].get(key) !== facts[1].get(key);
      const values = [0, 1].filter((side) => facts[side].size > 0)
        .map((side) => facts[side].get(key) || "");
      if (both && values[0] === values[1]) {
        const cell = make("td", "mono", values[0]);
        cell.colSpan = 2;
        line.append(cell);
      } else {
        for (const value of values) {
          line.append(make("td", (differs ? "differs " : "") + "mono", value));
        }
      }
      table.append(line);
    }
    panel.replaceChildren(title);
    if (stream.moves.has(row)) {
      const other = stream.moves.get(row);
      const side = stream.event(0, other) ? 0 : 1;
      const jump = make("button", "", "the same in " + "AB"[side] + ", line " + stream.line[side][other]);
      jump.addEventListener("click", () => select(other));
      panel.append(jump);
    }
    panel.append(table);
    for (const side of [0, 1]) {
      const event = stream.event(side, row);
      if (!event || event[0] !== DISPATCH || event.length === 7) continue;
      const sameAsA = side === 1 && both && equal && stream.kinds[row] !== "n" &&
        String(stream.event(0, row)) === String(event);
      if (sameAsA) continue;
      const other = stream.event(1 - side, row);
      panel.append(make("h3", "", "Bindings of " + sideName(side)));
      const compared = stream.kinds[row] === "n" || !other || other[0] !== DISPATCH ? null : other;
      panel.append(bindingsTable(side, event, compared));
    }
  };

  // --- Moving about

  const ahead = (row, step) => {
    const rows = stream.differences;
    let low = 0, high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle] < row + (step > 0 ? 1 : 0)) low = middle + 1; else high = middle;
    }
    for (let at = step > 0 ? low : low - 1; at >= 0 && at < rows.length; at += step) {
      if (passes[rows[at]]) return rows[at];
    }
    return -1;
  };
  const status = (text) => { byId("status").textContent = text; };
  const describe = () => {
    const rows = many(shown.length, "row");
    const differences = many(stream.differences.length, "difference");
    let place = "";
    if (state.row >= 0 && stream.kinds[state.row] !== "s") {
      place = ", at " + (stream.differences.indexOf(state.row) + 1);
    }
    status(rows + " shown of " + stream.count.toLocaleString("en") + "; " + differences + place +
           (stream.data.cut ? "; " + stream.data.cut : ""));
  };
  const draw = () => {
    if (!stream) return;
    // The browser's own frame takes the colour of the page.
    document.querySelector("meta[name=theme-color]").content = colours().sheet;
    renderRows();
    drawStrip();
    drawOverview();
  };
  const select = (row) => {
    state.row = row;
    const index = indexOf(row);
    const first = firstShown(), room = list.clientHeight / ROW;
    if (index < first + 1 || index > first + room - 2) {
      list.scrollTop = topOf(Math.max(0, index - Math.floor(room / 3)));
    }
    renderRows();
    drawStrip();
    renderDetail();
    describe();
    saveState();
  };
  const goToDifference = (step) => {
    const row = ahead(state.row >= 0 ? state.row : step > 0 ? -1 : stream.count, step);
    if (row >= 0) select(row);
    else status(step > 0 ? "There is no further difference." : "There is no earlier difference.");
  };
  const step = (by) => {
    if (shown.length === 0) return;
    const at = state.row < 0 ? Math.floor(firstShown()) - (by > 0 ? 1 : 0) : indexOf(state.row);
    select(shown[Math.max(0, Math.min(shown.length - 1, at + by))]);
  };

  let pending = false;
  list.addEventListener("scroll", () => {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => {
      pending = false;
      renderRows();
      drawStrip();
    });
  });
  list.addEventListener("click", (click) => {
    const row = click.target.closest(".row");
    if (row) select(Number(row.dataset.row));
  });
  window.addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  const KEYS = {
    n: () => goToDifference(1),
    p: () => goToDifference(-1),
    "/": () => byId("kernel").focus(),
    d: () => byId("diffs").click(),
    t: () => byId("theme").click(),
  };
  const LIST_KEYS = {
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    PageDown: () => step(Math.floor(list.clientHeight / ROW) - 1),
    PageUp: () => step(1 - Math.floor(list.clientHeight / ROW)),
    Home: () => step(-shown.length),
    End: () => step(shown.length),
  };
  document.addEventListener("keydown", (press) => {
    if (press.ctrlKey || press.metaKey || press.altKey) return;
    const typing = press.target instanceof HTMLInputElement && press.target.type === "search";
    if (typing) {
      if (press.key === "Escape") press.target.blur();
      return;
    }
    const act = KEYS[press.key] || (press.target === list ? LIST_KEYS[press.key] : undefined);
    if (!act || !stream) return;
    press.preventDefault();
    act();
  });

  // --- Controls

  const refilter = () => {
    applyFilters();
    list.scrollTop = state.row >= 0 ? topOf(Math.max(0, indexOf(state.row) - 8)) : 0;
    draw();
    describe();
    saveState();
  };
  for (const name of ["kernel", "buffer"]) {
    byId(name).addEventListener("input", () => {
      state[name] = byId(name).value;
      refilter();
    });
  }
  for (const name of ["diffs", "all"]) {
    byId(name).addEventListener("change", () => {
      state[name] = byId(name).checked;
      refilter();
    });
  }
  byId("next").addEventListener("click", () => goToDifference(1));
  byId("previous").addEventListener("click", () => goToDifference(-1));

  const showLegend = () => {
    const nodes = [];
    for (const [letter, [kind, mark]] of Object.entries(KINDS)) {
      const count = stream.totals[letter] || 0;
      if (count === 0) continue;
      const node = make("span", "kind-" + kind, (mark ? mark + " " : "") + kind + " " + count.toLocaleString("en"));
      node.dataset.kind = kind;
      node.dataset.count = count;
      nodes.push(node);
    }
    byId("legend").replaceChildren(...nodes);
  };
  const showStream = (index) => {
    state.part = index;
    if (!built.has(index)) built.set(index, new Stream(streams[index]));
    stream = built.get(index);
    if (state.row >= stream.count) state.row = -1;
    for (const tab of byId("tabs").children) {
      const mine = Number(tab.dataset.part) === index;
      tab.setAttribute("aria-selected", String(mine));
      tab.tabIndex = mine ? 0 : -1;
    }
    for (const name of ["next", "previous"]) byId(name).disabled = stream.differences.length === 0;
    showLegend();
    renderDetail();
    refilter();
  };
  const showTabs = () => {
    byId("tabs").replaceChildren(...streams.map((each, index) => {
      const tab = make("button", "", each.name);
      tab.type = "button";
      tab.dataset.part = index;
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", "viewer");
      tab.addEventListener("click", () => {
        state.row = -1;
        showStream(index);
      });
      return tab;
    }));
    byId("tabs").addEventListener("keydown", (press) => {
      const by = press.key === "ArrowRight" ? 1 : press.key === "ArrowLeft" ? -1 : 0;
      if (by === 0) return;
      const tab = byId("tabs").children[(state.part + by + streams.length) % streams.length];
      tab.click();
      tab.focus();
    });
  };

  // How long a step of scrolling takes, said in the status line and left on the page.
  const measure = () => {
    const times = [];
    for (let at = 0; at <= 200; ++at) {
      const begin = performance.now();
      list.scrollTop = topOf(Math.floor(at / 200 * shown.length));
      renderRows();
      drawStrip();
      layer.getBoundingClientRect();
      times.push(performance.now() - begin);
    }
    times.sort((x, y) => x - y);
    root.dataset.scrollMedianMs = times[100].toFixed(2);
    root.dataset.scrollWorstMs = times[200].toFixed(2);
    status("ready in " + root.dataset.readyMs + " ms; a step of scrolling takes " +
           root.dataset.scrollMedianMs + " ms, at worst " + root.dataset.scrollWorstMs + " ms");
  };

  const start = () => {
    const given = readState();
    if (streams.length === 0) return;
    byId("viewer").hidden = false;
    byId("name-a").textContent = sideName(0);
    byId("name-b").textContent = sideName(1);
    for (const name of ["kernel", "buffer"]) byId(name).value = state[name];
    for (const name of ["diffs", "all"]) byId(name).checked = state[name];
    const row = state.row;
    showStream(state.part);
    if (row >= 0) select(Math.min(row, stream.count - 1));
    else if (given.get("first") !== "0" && stream.differences.length > 0) goToDifference(1);
    root.dataset.readyMs = performance.now().toFixed(0);
    if (given.get("measure") === "1") measure();
    root.dataset.ready = "yes";
  };
  showTabs();
  window.addEventListener("hashchange", start);
  start();
})();
