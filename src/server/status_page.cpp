#include "server/status_page.h"

namespace vitrove {

std::string_view status_page_html() {
  return R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Vitrove</title>
<style>
:root {
  --ground: #f6f7f9; --card: #ffffff; --ink: #1b1f24; --soft: #5d6670; --line: #dfe3e8;
  --local: #1a7f5a; --joined: #3d9ab0; --store: #3567c4; --miss: #c4682b;
  --bad: #b3261e; --free: #e6e9ed;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171b; --card: #1d2126; --ink: #e8eaed; --soft: #9aa4af; --line: #2e343b;
    --local: #46b98c; --joined: #63bdd3; --store: #6f9bec; --miss: #e0905a;
    --bad: #f2877f; --free: #2b3138;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
header { display: flex; align-items: baseline; gap: .8rem; flex-wrap: wrap; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: .95rem; margin: 0 0 .8rem; color: var(--soft); font-weight: 600; }
.soft { color: var(--soft); }
.cards {
  display: grid; gap: 1rem; margin-top: 1.2rem;
  grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr));
}
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; }
section.wide { grid-column: 1 / -1; overflow-x: auto; }
.figure { font-size: 1.9rem; font-weight: 650; font-variant-numeric: tabular-nums; }
.bar { display: flex; height: 1.1rem; border-radius: .3rem; overflow: hidden; background: var(--free); }
.bar span { min-width: 0; }
.key { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin-top: .7rem; }
.key i { display: inline-block; width: .75rem; height: .75rem; border-radius: .2rem; margin-right: .4rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
tr:last-child td { border-bottom: 0; }
th { color: var(--soft); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
#lost { display: none; color: var(--bad); }
</style>
</head>
<body>
<main>
<header>
  <h1>Vitrove</h1>
  <span id="phase" class="soft"></span>
  <span id="lost" role="status">no answer from the server</span>
</header>
<div class="cards">
  <section><h2>Hit rate</h2><div class="figure" id="rate">–</div><div class="soft" id="total"></div>
    <div class="soft" id="recent"></div></section>
  <section><h2>Encoder time saved</h2><div class="figure" id="saved">–</div><div class="soft" id="spent"></div></section>
  <section><h2>Encoded</h2><div class="figure" id="encoded">–</div><div class="soft" id="queue"></div></section>
  <section class="wide"><h2>Where items were found</h2>
    <div class="bar" id="lookups"></div><div class="key" id="lookups-key"></div></section>
  <section class="wide"><h2>Pool</h2>
    <div class="bar" id="pool"></div><div class="key" id="pool-key"></div></section>
  <section class="wide"><h2>Stores, nearest first</h2>
    <table><thead><tr><th>Store</th><th>State</th><th>Found</th><th>Absent</th><th>Errors</th>
    <th>Mean get</th><th>Stored</th><th>Put errors</th><th>Waiting</th></tr></thead>
    <tbody id="stores"></tbody></table></section>
</div>
</main>
<script>
"use strict";
const at = id => document.getElementById(id);
const count = n => n.toLocaleString("en");
function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) { n /= 1024; unit += 1; }
  return (unit === 0 ? n : n.toFixed(1)) + " " + units[unit];
}
function span(seconds) {
  if (seconds < 1) return (seconds * 1000).toFixed(seconds < 0.01 ? 2 : 0) + " ms";
  if (seconds < 120) return seconds.toFixed(1) + " s";
  if (seconds < 7200) return (seconds / 60).toFixed(1) + " min";
  if (seconds < 172800) return (seconds / 3600).toFixed(1) + " h";
  return (seconds / 86400).toFixed(1) + " days";
}
function bar(name, parts) {
  const total = parts.reduce((sum, part) => sum + part.value, 0);
  at(name).replaceChildren(...parts.map(part => {
    const piece = document.createElement("span");
    piece.style.background = `var(--${part.colour})`;
    piece.style.flex = `${total === 0 ? 0 : part.value / total} 0 0`;
    piece.title = `${part.label}: ${part.text}`;
    return piece;
  }));
  at(name + "-key").replaceChildren(...parts.map(part => {
    const line = document.createElement("span");
    const mark = document.createElement("i");
    mark.style.background = `var(--${part.colour})`;
    line.append(mark, `${part.label} ${part.text}`);
    return line;
  }));
}
function row(cells) {
  const line = document.createElement("tr");
  line.append(...cells.map(([text, bad]) => {
    const cell = document.createElement("td");
    cell.textContent = text;
    if (bad) cell.className = "bad";
    return cell;
  }));
  return line;
}
function show(now) {
  const found = now.lookups, hits = found.local + found.joined + found.store;
  const all = hits + found.miss;
  at("phase").textContent = `${now.phase}, up ${span(now.uptime_seconds)}`;
  at("rate").textContent = all === 0 ? "–" : (100 * hits / all).toFixed(1) + " %";
  at("total").textContent = `${count(hits)} of ${count(all)} items`;
  at("recent").textContent = Object.entries(now.hit_ratio)
    .map(([window, ratio]) => `${window} ${ratio === null ? "–" : (100 * ratio).toFixed(1) + " %"}`)
    .join(", ");
  at("saved").textContent = span(now.saved_seconds);
  at("spent").textContent = `${span(now.encoder.seconds)} spent`;
  at("encoded").textContent = count(now.encoder.items);
  at("queue").textContent = `${count(now.encoder.queued)} items in line, ` +
    `${count(now.requests.running)} requests running, ${count(now.requests.waiting)} waiting`;
  bar("lookups", [["local", "pool"], ["joined", "joined"], ["store", "stores"], ["miss", "encoded"]]
    .map(([key, label]) => ({colour: key, label, value: found[key], text: count(found[key])})));
  const pool = now.pool;
  bar("pool", [
    {colour: "store", label: "pinned", value: pool.pinned_bytes, text: bytes(pool.pinned_bytes)},
    {colour: "local", label: "used", value: Math.max(0, pool.used_bytes - pool.pinned_bytes),
     text: `${bytes(pool.used_bytes)} in ${count(pool.entries)} entries`},
    {colour: "free", label: "free", value: pool.free_bytes, text: bytes(pool.free_bytes)}]);
  at("stores").replaceChildren(...now.stores.map(store => row([
    [store.name], [store.state, store.state !== "ready"], [count(store.get.ok)],
    [count(store.get.absent)], [count(store.get.errors), store.get.errors > 0],
    [store.get.calls === 0 ? "–" : span(store.get.seconds / store.get.calls)],
    [count(store.put.ok)], [count(store.put.errors), store.put.errors > 0],
    [count(store.get.pending + store.put.pending)]])));
  if (now.stores.length === 0) at("stores").replaceChildren(row([["none"]]));
}
async function refresh() {
  try {
    const reply = await fetch("status.json", {cache: "no-store"});
    if (!reply.ok) throw new Error(reply.status);
    show(await reply.json());
    at("lost").style.display = "none";
  } catch {
    at("lost").style.display = "inline";
  }
  setTimeout(refresh, document.hidden ? 10000 : 2000);
}
refresh();
</script>
</body>
</html>
)html";
}

}  // namespace vitrove
