/* proxy/admin/page_parts.h - the fixed text of the live page; private to page.c. */
#ifndef PROXY_ADMIN_PAGE_PARTS_H
#define PROXY_ADMIN_PAGE_PARTS_H

/* Without scripts the page reloads itself. The empty icon spares a request. */
#define PAGE_HEAD                                                                                  \
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"                            \
    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"                    \
    "<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>"                            \
    "<link rel=\"icon\" href=\"data:,\"><title>"

#define PAGE_STYLE                                                                                 \
    "<style>\n"                                                                                    \
    ":root{color-scheme:light dark;--ink:#1d2433;--soft:#5b6475;--line:#dfe3ea;--card:#fff;"       \
    "--ground:#f5f6f8;--mark:#2a6fb5}\n"                                                           \
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#a2abba;--line:#343b48;"         \
    "--card:#1f2530;--ground:#161a21;--mark:#6aa9e9}}\n"                                           \
    "body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--ground);"          \
    "margin:0 auto;max-width:72em;padding:1.2em}\n"                                                \
    "h1{font-size:1.4em;margin:0}h2{font-size:1em;margin:0 0 .5em}small{color:var(--soft);"        \
    "font-weight:400}\nheader p,section p{color:var(--soft);margin:.3em 0}\n"                      \
    "main{display:grid;gap:1em;grid-template-columns:repeat(auto-fit,minmax(18em,1fr));"           \
    "margin-top:1em}\nsection,nav{background:var(--card);border:1px solid var(--line);"            \
    "border-radius:6px;padding:.9em 1.1em}\n"                                                      \
    ".cards{grid-column:1/-1;display:flex;flex-wrap:wrap;gap:1em 3em;color:var(--soft)}"           \
    ".cards b{display:block;font-size:1.9em;line-height:1.2;color:var(--ink)}\n"                   \
    "@media(min-width:44em){.wide{grid-column:span 2}}.all,nav{grid-column:1/-1}\n"                \
    "table{border-collapse:collapse;width:100%}th{text-align:left;font-weight:400;"                \
    "color:var(--soft)}td{text-align:right;font-variant-numeric:tabular-nums}"                     \
    "th,td{padding:.12em .3em}th[scope=col]{text-align:right}\n"                                   \
    ".bar{width:40%;text-align:left}.bar i{display:block;height:.7em;background:var(--mark);"      \
    "border-radius:2px;min-width:0}\n"                                                             \
    "svg{width:100%;height:5em}polyline{fill:none;stroke:var(--mark);stroke-width:1.5;"            \
    "vector-effect:non-scaling-stroke}\n"                                                          \
    "ul{list-style:none;margin:0;padding:0;columns:22em}li{display:flex}"                          \
    "a{color:var(--mark);flex:0 0 8em}\n</style>\n"

/* A page in the background asks rarely: looking must cost the proxy next to nothing. */
#define PAGE_SCRIPT                                                                                \
    "<script>\n(function(){\n"                                                                     \
    "var state=document.getElementById('state');\n"                                                \
    "function put(id,n){var e=document.getElementById(id);\n"                                      \
    " if(e)e.textContent=n.toFixed(e.dataset.d||0);}\n"                                            \
    "function show(d){var v=d.values,r=d.rates,bars=document.querySelectorAll('[data-bar]'),\n"    \
    " widest=1,most=1;\n"                                                                          \
    " for(var k in v)put(k,v[k]);\n"                                                               \
    " bars.forEach(function(b){widest=Math.max(widest,v[b.dataset.bar])});\n"                      \
    " bars.forEach(function(b){b.style.width=100*v[b.dataset.bar]/widest+'%'});\n"                 \
    " r.forEach(function(n){most=Math.max(most,n)});put('most',r.length?most:0);\n"                \
    " document.getElementById('line').setAttribute('points',r.map(function(n,i){\n"                \
    "  return (240-4*(r.length-1-i)).toFixed(1)+','+(41-40*n/most).toFixed(1)}).join(' '));\n"     \
    " state.textContent='Live.';}\n"                                                               \
    "function next(){\n"                                                                           \
    " fetch('/squid-internal-mgr/live.json',{cache:'no-store'}).then(function(a){\n"               \
    "  if(!a.ok)throw a.status;return a.json()}).then(show).catch(function(){\n"                   \
    "  state.textContent='No answer; trying again.'}).then(function(){\n"                          \
    "  setTimeout(next,document.hidden?15000:2000)});}\n"                                          \
    "setTimeout(next,1000);\n})();\n</script>\n"

#endif
